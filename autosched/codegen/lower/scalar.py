"""Lowering of scalar parts: one stage, element by element, or in vectors along one proved-independent axis."""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.kernel import Assign, For, Function, If, Lane, Stmt
from autosched.codegen.lower.context import Context, identifier
from autosched.codegen.lower.operands import LANE
from autosched.codegen.lower.rename import place, place_condition, place_index
from autosched.codegen.lower.simplify import bind
from autosched.codegen.lower.update import combine, guarded, updated
from autosched.ir.program import Axis
from autosched.ir.value import Read, Select, Value, reads
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, free_vars
from autosched.logic.expr import substitute_bool, substitute_int
from autosched.tiling.guards import spatial_formulas
from autosched.tiling.plan import ScalarPart

PREPARE_WIDTH = 16
"""Elements that a preparation computes together: it is not timed, so nothing is decided about it."""


def lower_scalar(part: ScalarPart, ctx: Context) -> tuple[Stmt, ...]:
    """Spatial axes outside, the vectorised one innermost among them, reductions inside with a register accumulator."""
    width = ctx.values.get(part.names("vector"), 1)
    threads = ctx.values.get(part.names("threads"), 1)
    return Scalar(part, ctx, width, threads).emit()


def prepare_scalar(part: ScalarPart, ctx: Context) -> None:
    """A stage of `const` data becomes a function that fills a packed buffer, and the tensor is that buffer."""
    name = part.stage.assign.tensor
    plain = ctx.tensor(name)
    if plain.scope == "packed":  # by the other plan of a choice: the same, or they would not be in one kernel
        return
    ctx.buffers[name] = replace(plain, scope="packed")
    body = Scalar(part, ctx, PREPARE_WIDTH if part.vector else 1, 1).emit()
    sources = dict.fromkeys(r.tensor for r in part.stage.reads if r.tensor != name)
    ctx.prepare.append(Function(f"prepare_{name}", (*sources, name), body))


class Scalar:
    """Emits one scalar part."""

    def __init__(self, part: ScalarPart, ctx: Context, width: int, threads: int) -> None:
        self.part, self.stage, self.ctx, self.width, self.threads = part, part.stage, ctx, width, threads
        started = reads(self.stage.init) if self.stage.init is not None else ()
        for read in (*self.stage.reads, *started, self.stage.target):
            ctx.tensor(read.tensor)
        by_name = {a.name: a for a in self.stage.axes}
        self.axes = [by_name[n] for n in part.order]

    def emit(self) -> tuple[Stmt, ...]:
        return self.loops(0, {}, False)

    def loops(self, k: int, at: dict[str, Int], vectored: bool) -> tuple[Stmt, ...]:
        """Loops from axis `k` inwards; `at` places the axes so far."""
        spatial = {a.name for a in self.stage.spatial}
        if k == len(self.axes):
            return self.point(at, vectored)
        axis = self.axes[k]
        if self.part.register and axis.name not in spatial:
            return self.accumulate(k, at, vectored)
        var = Var(identifier(axis.name))
        lower, upper = substitute_int(axis.lower, at), substitute_int(axis.upper, at)
        if axis.name == self.part.vector and self.width > 1:
            return self.chunks(axis, k, at)
        kind = self.kind(k)
        return (For(var.name, lower, upper, self.loops(k + 1, at | {axis.name: var}, vectored), kind),)

    def kind(self, k: int) -> str:
        """How the loop over axis `k` runs: the outermost is shared out, among threads or as a GPU's blocks."""
        if k > 0 or not self.part.parallel:
            return "serial"
        if self.part.scheme == "gpu":
            return "block.x"
        return "parallel" if self.threads > 1 else "serial"

    def chunks(self, axis: Axis, k: int, at: dict[str, Int]) -> tuple[Stmt, ...]:
        """The vectorised axis in whole vectors, then one partial vector."""
        var, w = Var(identifier(axis.name)), self.width
        assert isinstance(axis.lower, Const)
        full, rest = divmod(axis.extent, w)
        stmts: list[Stmt] = []
        body = self.loops(k + 1, at | {axis.name: var + Var(LANE)}, True)
        if full:
            kind = self.kind(k)
            low = axis.lower.value
            stmts.append(For(var.name, Const(low), Const(low + full * w), body, kind, w))
        if rest:
            start = Const(axis.lower.value + full * w)
            stmts += bind(_with_valid(body, Var(LANE) < rest), {var.name: start})
        return tuple(stmts)

    def lane(self, vectored: bool) -> Lane | None:
        return Lane(LANE, self.width) if vectored else None

    def formula(self, at: dict[str, Int]) -> Bool:
        """The guards over axes, placed."""
        return all_of(*(substitute_bool(g, at) for g in self.stage.guards if isinstance(g, Bool)))

    def point(self, at: dict[str, Int], vectored: bool) -> tuple[Stmt, ...]:
        assign = self.stage.assign
        index = place_index(assign.index, at)
        stmt = Assign(assign.tensor, index, place(updated(self.stage), at), self.lane(vectored))
        return _under(self.formula(at), stmt)

    def accumulate(self, k: int, at: dict[str, Int], vectored: bool) -> tuple[Stmt, ...]:
        """Start, reduction loops and store of one accumulator register."""
        assign, dtype = self.stage.assign, self.stage.assign.value.dtype
        lane = self.lane(vectored)
        element: Int = Var(LANE) if vectored else Const(0)
        acc = self._register(vectored)
        index = place_index(assign.index, at)
        held, stored = Read(acc, (element,), dtype), Read(assign.tensor, index, dtype)
        start: Value = stored if self.stage.init is None else place(self.stage.init, at)

        def update(at: dict[str, Int]) -> tuple[Stmt, ...]:
            new = combine(assign.op, held, place(assign.value, at))
            value = guarded(tuple(place_condition(g, at) for g in self.stage.guards), new, held)
            return _under(self.formula(at), Assign(acc, (element,), value, lane), held)

        def loops(k: int, at: dict[str, Int]) -> tuple[Stmt, ...]:
            if k == len(self.axes):
                return update(at)
            axis = self.axes[k]
            var = Var(identifier(axis.name))
            lower, upper = substitute_int(axis.lower, at), substitute_int(axis.upper, at)
            return (For(var.name, lower, upper, loops(k + 1, at | {axis.name: var})),)

        # An initial value is given to all elements, guarded or not; without one, guarded elements are not touched.
        guards = () if self.stage.init is not None else spatial_formulas(self.stage)
        touched = all_of(*(substitute_bool(g, at) for g in guards))
        by_lane = lane is not None and LANE in free_vars(touched)
        valid = touched if by_lane else TRUE
        body = (
            Assign(acc, (element,), start, lane, valid),
            *loops(k, at),
            Assign(assign.tensor, index, held, lane, valid),
        )
        return body if by_lane or touched == TRUE else (If(touched, body),)

    def _register(self, vectored: bool) -> str:
        shape = (self.width if vectored else 1,)
        name = f"{self.stage.assign.tensor}_acc"
        return self.ctx.declare(name, self.stage.assign.value.dtype, shape, "register").name


def _under(condition: Bool, stmt: Assign, otherwise: Value | None = None) -> tuple[Stmt, ...]:
    """The statement where the guard holds. A guard that differs between lanes masks the store; a register keeps its
    other lanes by an explicit choice, since a masked register assignment clears them."""
    if condition == TRUE:
        return (stmt,)
    if stmt.lane is None or LANE not in free_vars(condition):
        return (If(condition, (stmt,)),)
    if otherwise is not None:
        value = Select(condition, stmt.value, otherwise, stmt.value.dtype)
        return (Assign(stmt.buffer, stmt.index, value, stmt.lane, stmt.valid),)
    return (Assign(stmt.buffer, stmt.index, stmt.value, stmt.lane, all_of(stmt.valid, condition)),)


def _with_valid(body: tuple[Stmt, ...], valid: Bool) -> tuple[Stmt, ...]:
    """Mask every vector assignment of a partial vector."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Assign) and stmt.lane is not None:
            result.append(Assign(stmt.buffer, stmt.index, stmt.value, stmt.lane, all_of(valid, stmt.valid)))
        elif isinstance(stmt, For):
            result.append(For(stmt.var, stmt.lower, stmt.upper, _with_valid(stmt.body, valid), stmt.kind, stmt.step))
        elif isinstance(stmt, If):
            result.append(If(stmt.condition, _with_valid(stmt.body, valid)))
        else:
            result.append(stmt)
    return tuple(result)


__all__ = ["lower_scalar"]
