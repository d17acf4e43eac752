"""Lowering of scalar parts: a stage element by element, or in vectors along one of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.operands import LANE
from autosched.codegen.lower.scalar.blocked_reduction import blocked
from autosched.codegen.lower.scalar.invariant import split_invariant
from autosched.codegen.lower.scalar.reduction import Reduction
from autosched.codegen.lower.scalar.shape import Ats, Shape, guard_formula, masked, shape_of, shared_out, under
from autosched.codegen.passes.simplify import bind
from autosched.codegen.tree.kernel import Assign, For, Function, Stmt, StoreFence
from autosched.codegen.tree.rename import place, place_index
from autosched.codegen.tree.update import updated
from autosched.ir.formula import apply_formulas
from autosched.ir.nodes import Axis, Stage
from autosched.ir.value import Read, Value, reads
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.plan import ScalarPart

PREPARE = Shape(width=16)
"""How a preparation computes: it is not timed, so nothing is decided about it."""


def lower_scalar(part: ScalarPart, ctx: Context) -> tuple[Stmt, ...]:
    """Spatial axes outside, the vectorised one innermost among them, reductions inside with a register accumulator."""
    return Scalar(part, ctx, shape_of(part, ctx.values)).emit()


def prepare_scalar(part: ScalarPart, ctx: Context) -> None:
    """A stage of `const` data becomes a function that fills a packed buffer, and the tensor is that buffer."""
    name = part.stage.assign.tensor
    plain = ctx.tensor(name)
    if plain.scope == "packed":  # by the other plan of a choice: the same, or they would not be in one kernel
        return
    ctx.buffers[name] = replace(plain, scope="packed")
    wide = part.vector and part.scheme != "gpu"
    body = Scalar(part, ctx, PREPARE if wide else Shape()).emit()
    sources = dict.fromkeys(r.tensor for r in part.stage.reads if r.tensor != name)
    ctx.prepare.append(Function(f"prepare_{name}", (*sources, name), body))


@dataclass
class Scalar:
    """Emits one scalar part. `ats` place the axes so far, once for each copy of an unrolled body."""

    part: ScalarPart
    ctx: Context
    shape: Shape

    def __post_init__(self) -> None:
        self.stage = with_formulas(self.part.stage, self.part, self.shape)
        started = reads(self.stage.init) if self.stage.init is not None else ()
        for read in (*self.stage.reads, *started, self.stage.target):
            self.ctx.tensor(read.tensor)
        by_name = {a.name: a for a in self.stage.axes}
        self.axes = [by_name[n] for n in self.part.order]
        self.spatial = {a.name for a in self.stage.spatial}
        self.kept: set[str] = set()  # registers of what is the same along the vectorised axis
        self.copies = 1
        self.behind = (StoreFence(),) if self.shape.stream else ()

    def emit(self) -> tuple[Stmt, ...]:
        return (*self.loops(0, ({},), False), *self.behind)

    def loops(self, k: int, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        """Loops from axis `k` inwards."""
        if k == len(self.axes):
            return self.points(ats, vectored)
        axis = self.axes[k]
        if axis.name == self.part.running:
            return Reduction(self, tuple(self.axes[k + 1 :]), ats, vectored).running(axis)
        if self.part.register and axis.name not in self.spatial:
            return Reduction(self, tuple(self.axes[k:]), ats, vectored).emit()
        if axis.name == self.part.vector and self.shape.wide and not self.shape.across:
            return self.chunks(axis, k, ats)
        if axis.name == self.part.rows and self.shape.across and self.shape.rows > 1:
            return self.tiles(axis, k, ats)
        return self.loop(axis, k, ats, vectored)

    def loop(self, axis: Axis, k: int, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        var = Var(identifier(axis.name))
        lower, upper = substitute_int(axis.lower, ats[0]), substitute_int(axis.upper, ats[0])
        body = self.loops(k + 1, tuple(at | {axis.name: var} for at in ats), vectored)
        return self.shared(k, For(var.name, lower, upper, body))

    def shared(self, k: int, loop: For) -> tuple[Stmt, ...]:
        """The loop over axis `k`: the outermost is shared out, among threads or as a GPU's blocks."""
        if not self.part.parallel or (k > 0 and not self.apart(k)):
            return (loop,)
        if self.part.scheme == "gpu":
            return (replace(loop, kind="block.x"),)
        return shared_out(loop, self.shape.threads, self.behind)

    def apart(self, k: int) -> bool:
        """Whether a GPU shares out all loops down to axis `k`: of what it prepares, each a subscript by itself."""
        subscripts = {i.name for i in self.stage.assign.index if isinstance(i, Var)}
        inner = {a.name for a in self.axes[1 : k + 1]}
        return self.part.prepared and self.part.scheme == "gpu" and inner <= subscripts

    def tiles(self, axis: Axis, k: int, ats: Ats) -> tuple[Stmt, ...]:
        """Several rows at a time, then one at a time."""
        var, rows = Var(identifier(axis.name)), self.shape.rows
        assert isinstance(axis.lower, Const)
        low, full = axis.lower.value, axis.extent // rows * rows
        stmts: list[Stmt] = []
        if full:
            together = tuple(at | {axis.name: var + r} for r in range(rows) for at in ats)
            body = self.loops(k + 1, together, False)
            stmts += self.shared(k, For(var.name, Const(low), Const(low + full), body, step=rows))
        if full < axis.extent:
            body = self.loops(k + 1, tuple(at | {axis.name: var} for at in ats), False)
            stmts.append(For(var.name, Const(low + full), Const(low + axis.extent), body))
        return tuple(stmts)

    def chunks(self, axis: Axis, k: int, ats: Ats) -> tuple[Stmt, ...]:
        """The vectorised axis, several vectors at a time, then one, then a part of one."""
        var, w, many = Var(identifier(axis.name)), self.shape.width, self.shape.unroll
        assert isinstance(axis.lower, Const)
        low = axis.lower.value
        before, whole = self.hoisted(axis, ats) if k == len(self.axes) - 1 else ((), self)
        stmts: list[Stmt] = []
        done = 0
        if self.shape.block and self.part.blocked and axis.extent >= w * many:
            stmts += blocked(self, axis, k, ats)
            done = axis.extent // (w * many) * w * many
        for count in dict.fromkeys((many, 1)):
            full = (axis.extent - done) // (w * count) * w * count
            if full:
                vectors = tuple(at | {axis.name: var + (Var(LANE) + u * w)} for u in range(count) for at in ats)
                body = whole.loops(k + 1, vectors, True)
                loop = For(var.name, Const(low + done), Const(low + done + full), body, step=w * count)
                stmts += self.shared(k, loop) if done == 0 else (loop,)
            done += full
        if done < axis.extent:
            body = whole.loops(k + 1, tuple(at | {axis.name: var + Var(LANE)} for at in ats), True)
            stmts += bind(masked(body, Var(LANE) < axis.extent - done), {var.name: Const(low + done)})
        return (*before, *stmts)

    def hoisted(self, axis: Axis, ats: Ats) -> tuple[tuple[Stmt, ...], Scalar]:
        """What an elementwise stage computes once for all of the vectorised axis, and the stage that reads it there."""
        stage = self.stage
        if stage.guards or stage.assign.op != "=":
            return (), self
        split = split_invariant(stage.assign.value, frozenset({axis.name}), stage.assign.tensor)
        if not split.parts:
            return (), self
        before: list[Stmt] = []
        held: list[Read] = []
        for part in split.parts:
            shape = (len(ats), self.shape.width)
            buffer = self.ctx.declare(f"{stage.assign.tensor}_inv", part.dtype, shape, "register").name
            for copy, at in enumerate(ats):
                before.append(Assign(buffer, (Const(copy), Var(LANE)), place(part, at), self.shape.lane))
            held.append(Read(buffer, (Const(0), Var(LANE)), part.dtype))
        inner = Scalar(replace(self.part, leeway=replace(self.part.leeway, formulas={})), self.ctx, self.shape)
        inner.stage = replace(stage, assign=replace(stage.assign, value=split.with_parts(tuple(held))))
        inner.kept, inner.copies = {r.tensor for r in held}, len(ats)
        return tuple(before), inner

    def points(self, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        lane = self.shape.lane if vectored else None
        stmts: list[Stmt] = []
        for number, at in enumerate(ats):
            index = place_index(self.stage.assign.index, at)
            value = self.placed(updated(self.stage), at, number % self.copies)
            stmt = Assign(self.stage.assign.tensor, index, value, lane, stream=self.shape.stream and vectored)
            stmts += under(guard_formula(self.stage, at), stmt)
        return tuple(stmts)

    def placed(self, value: Value, at: Mapping[str, Int], copy: int) -> Value:
        """A value at a place of one copy of the body: what was computed before the loops is that copy's."""

        def own(read: Read) -> Value:
            return Read(read.tensor, (Const(copy), Var(LANE)), read.dtype) if read.tensor in self.kept else read

        return place(value, at, own)


def with_formulas(stage: Stage, part: ScalarPart, shape: Shape) -> Stage:
    """The stage with formulas in place of library calls, where the row says so."""
    if not shape.formulas:
        return stage
    known = part.leeway.formulas
    init = None if stage.init is None else apply_formulas(stage.init, known)
    return replace(stage, assign=replace(stage.assign, value=apply_formulas(stage.assign.value, known)), init=init)


__all__ = ["Scalar", "lower_scalar", "prepare_scalar"]
