"""Lowering of scalar parts: a stage element by element, or in vectors along one of its axes; and of rows of stages."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.codegen.kernel import Assign, For, Function, Stmt
from autosched.codegen.lower.blocked import blocked
from autosched.codegen.lower.context import Context, identifier
from autosched.codegen.lower.fed import Fed, feeds
from autosched.codegen.lower.invariant import split_invariant
from autosched.codegen.lower.operands import LANE
from autosched.codegen.lower.reduction import Reduction
from autosched.codegen.lower.rename import place, place_index
from autosched.codegen.lower.scalar_shape import (
    Ats,
    Shape,
    guard_formula,
    masked,
    shape_of,
    shared_out,
    under,
)
from autosched.codegen.lower.simplify import bind
from autosched.codegen.lower.update import updated
from autosched.ir.formula import apply_formulas
from autosched.ir.program import Axis, Stage
from autosched.ir.value import Read, Value, reads
from autosched.logic import Const, Int, Var
from autosched.logic.expr import substitute_int
from autosched.tiling.plan import RowsPart, ScalarPart

PREPARE = Shape(width=16)
"""How a preparation computes: it is not timed, so nothing is decided about it."""


def lower_scalar(part: ScalarPart, ctx: Context) -> tuple[Stmt, ...]:
    """Spatial axes outside, the vectorised one innermost among them, reductions inside with a register accumulator."""
    return Scalar(part, ctx, shape_of(part, ctx.values)).emit()


def lower_rows(part: RowsPart, ctx: Context) -> tuple[Stmt, ...]:
    """The shared loops once, the outermost among threads, and inside them each stage's own."""
    first = part.members[0].stage
    shared = [a for a in first.axes if a.name in part.shared]
    at: dict[str, Int] = {a.name: Var(identifier(a.name)) for a in shared}
    body: list[Stmt] = []
    members = [Scalar(m, ctx, replace(shape_of(m, ctx.values), threads=1)) for m in part.members]
    maker: Scalar | None = None
    for number, member in enumerate(members):
        names = [a.name for a in member.stage.axes[: len(shared)]]
        here = dict(zip(names, at.values(), strict=True))
        behind = members[number + 1] if number + 1 < len(members) else None
        if maker is not None:
            body += fed_reduction(maker, member, (here,))
            maker = None
        elif behind is not None and behind.shape.across and feeds(member.part, behind.part, len(shared)):
            maker = member
        else:
            body += member.loops(len(shared), (here,), False)
    threads = ctx.values.get(part.names("threads"), 1)
    for k, axis in reversed(list(enumerate(shared))):
        lower, upper = substitute_int(axis.lower, at), substitute_int(axis.upper, at)
        loop = For(identifier(axis.name), lower, upper, tuple(body))
        body = list(shared_out(loop, threads) if k == 0 else (loop,))
    return tuple(body)


def fed_reduction(maker: Scalar, summing: Scalar, ats: Ats) -> tuple[Stmt, ...]:
    """The reduction's loops, with the stage before it computed in them."""
    assert summing.part.across is not None
    before, inner = maker.hoisted(maker.axes[-1], ats)
    tensor, dtype = maker.stage.assign.tensor, maker.stage.assign.value.dtype
    shape = (summing.shape.unroll, summing.shape.width)
    register = maker.ctx.declare(f"{tensor}_now", dtype, shape, "register").name
    fed = Fed(inner, register, summing.part.across)
    return (*before, *Reduction(summing, (summing.axes[-1],), ats, False, fed).emit())


def prepare_scalar(part: ScalarPart, ctx: Context) -> None:
    """A stage of `const` data becomes a function that fills a packed buffer, and the tensor is that buffer."""
    name = part.stage.assign.tensor
    plain = ctx.tensor(name)
    if plain.scope == "packed":  # by the other plan of a choice: the same, or they would not be in one kernel
        return
    ctx.buffers[name] = replace(plain, scope="packed")
    body = Scalar(part, ctx, PREPARE if part.vector else Shape()).emit()
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

    def emit(self) -> tuple[Stmt, ...]:
        return self.loops(0, ({},), False)

    def loops(self, k: int, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        """Loops from axis `k` inwards."""
        if k == len(self.axes):
            return self.points(ats, vectored)
        axis = self.axes[k]
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
        if k > 0 or not self.part.parallel:
            return (loop,)
        if self.part.scheme == "gpu":
            return (replace(loop, kind="block.x"),)
        return shared_out(loop, self.shape.threads)

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
        if stage.guards or len(ats) > 1 or stage.assign.op != "=":
            return (), self
        split = split_invariant(stage.assign.value, frozenset({axis.name}), stage.assign.tensor)
        if not split.parts:
            return (), self
        before: list[Stmt] = []
        held: list[Value] = []
        for part in split.parts:
            buffer = self.ctx.declare(f"{stage.assign.tensor}_inv", part.dtype, (self.shape.width,), "register")
            before.append(Assign(buffer.name, (Var(LANE),), place(part, ats[0]), self.shape.lane))
            held.append(Read(buffer.name, (Var(LANE),), part.dtype))
        inner = Scalar(replace(self.part, leeway=replace(self.part.leeway, formulas={})), self.ctx, self.shape)
        inner.stage = replace(stage, assign=replace(stage.assign, value=split.with_parts(tuple(held))))
        return tuple(before), inner

    def points(self, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        lane = self.shape.lane if vectored else None
        stmts: list[Stmt] = []
        for at in ats:
            index = place_index(self.stage.assign.index, at)
            stmt = Assign(self.stage.assign.tensor, index, place(updated(self.stage), at), lane)
            stmts += under(guard_formula(self.stage, at), stmt)
        return tuple(stmts)


def with_formulas(stage: Stage, part: ScalarPart, shape: Shape) -> Stage:
    """The stage with formulas in place of library calls, where the row says so."""
    if not shape.formulas:
        return stage
    known = part.leeway.formulas
    init = None if stage.init is None else apply_formulas(stage.init, known)
    return replace(stage, assign=replace(stage.assign, value=apply_formulas(stage.assign.value, known)), init=init)


__all__ = ["lower_rows", "lower_scalar", "prepare_scalar"]
