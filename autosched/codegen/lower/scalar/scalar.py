"""Lowering of scalar parts: a stage element by element, or in vectors along one of its axes."""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.scalar.asked_once import reduction
from autosched.codegen.lower.scalar.blocked_reduction import blocked
from autosched.codegen.lower.scalar.carried import carried
from autosched.codegen.lower.scalar.reduction import Reduction
from autosched.codegen.lower.scalar.scalar_stage import ScalarStage
from autosched.codegen.lower.scalar.shape import Ats, Shape, guard_formula, masked, shape_of, shared_out, under
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, For, Function, Stmt, StoreFence
from autosched.codegen.tree.rename import place_index
from autosched.codegen.tree.update import updated
from autosched.ir.nodes import Axis
from autosched.logic import Const, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.asked_once import asked_once
from autosched.tiling.plans.plan import ScalarPart
from autosched.tiling.plans.scalar_parts import is_constant

ASKED = 16
"""Elements of which a thread of a GPU asks one after the other whether they are computed at all."""
PREPARE = Shape(width=16)
"""How a preparation computes: it is not timed, so nothing is decided about it."""


def lower_scalar(part: ScalarPart, ctx: Context) -> tuple[Stmt, ...]:
    """Spatial axes outside, the vectorised one innermost among them, reductions inside with a register accumulator."""
    return ScalarLoops(ScalarStage.of(part, ctx, shape_of(part, ctx.values))).emit()


def prepare_scalar(part: ScalarPart, ctx: Context) -> None:
    """A stage of `const` data becomes a function that fills a packed buffer, and the tensor is that buffer."""
    name = part.stage.assign.tensor
    plain = ctx.tensor(name)
    if plain.scope == "packed":  # by the other plan of a choice: the same, or they would not be in one kernel
        return
    ctx.buffers[name] = replace(plain, scope="packed")
    wide = part.vector and part.scheme != "gpu"
    body = ScalarLoops(ScalarStage.of(part, ctx, PREPARE if wide else Shape())).emit()
    sources = dict.fromkeys(r.tensor for r in part.stage.reads if r.tensor != name)
    ctx.prepare.append(Function(f"prepare_{name}", (*sources, name), body))


class ScalarLoops:
    """Emits the loops of one scalar stage. `ats` place the axes so far, once for each copy of an unrolled body."""

    def __init__(self, scalar: ScalarStage) -> None:
        self.scalar, self.part, self.shape, self.stage = scalar, scalar.part, scalar.shape, scalar.stage
        self.axes = scalar.axes
        self.spatial = {a.name for a in self.stage.spatial}
        self.behind = (StoreFence(),) if self.shape.stream else ()

    def emit(self) -> tuple[Stmt, ...]:
        return (*self.loops(0, ({},), False), *self.behind)

    def loops(self, k: int, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        """Loops from axis `k` inwards."""
        if k == len(self.axes):
            return self.points(ats, vectored)
        axis = self.axes[k]
        if axis.name == self.part.carried:
            return carried(self.scalar, axis, ats)
        if axis.name == self.part.running:
            return Reduction(self.scalar, tuple(self.axes[k + 1 :]), ats, vectored).running(axis)
        if self.part.register and axis.name not in self.spatial:
            return reduction(self.scalar, tuple(self.axes[k:]), ats, vectored)
        if axis.name == self.part.vector and self.shape.wide and not self.shape.across:
            return self.chunks(axis, k, ats)
        together = self.shape.across or self.part.carried is not None
        if axis.name == self.part.rows and together and self.shape.rows > 1:
            return self.tiles(axis, k, ats)
        return self.loop(axis, k, ats, vectored)

    def loop(self, axis: Axis, k: int, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        var = Var(identifier(axis.name))
        lower, upper = substitute_int(axis.lower, ats[0]), substitute_int(axis.upper, ats[0])
        body = self.loops(k + 1, tuple(at | {axis.name: var} for at in ats), vectored)
        if self.asks(k):
            chunk = Var(f"{var.name}_asked")
            inside = For(var.name, lower + chunk * ASKED, lower + chunk * ASKED + ASKED, body)
            return self.shared(k, For(chunk.name, Const(0), Const(axis.extent // ASKED), (inside,)))
        return self.shared(k, For(var.name, lower, upper, body))

    def shared(self, k: int, loop: For) -> tuple[Stmt, ...]:
        """The loop over axis `k`: the outermost is shared out, among threads or as a GPU's blocks."""
        if not self.part.parallel or (k > 0 and not self.apart(k)):
            return (loop,)
        if self.part.scheme == "gpu":
            return (replace(loop, kind="block.x"),)
        return shared_out(loop, self.shape.threads, self.behind)

    def asks(self, k: int) -> bool:
        """Whether a thread asks of several elements along axis `k`, the last that a GPU shares out. Data rarely ask for
        one: a thread for each would load a flag and end."""
        last = k + 1 == len(self.axes) or self.axes[k + 1].name not in self.spatial
        axis = self.axes[k]
        even = isinstance(axis.lower, Const) and isinstance(axis.upper, Const) and axis.extent % ASKED == 0
        return last and even and k > 0 and bool(asked_once(self.stage)) and self.apart(k)

    def apart(self, k: int) -> bool:
        """Whether a GPU shares out all loops down to axis `k`, whose bounds are numbers: of what it prepares, and of
        elements that ask data whether they are computed at all; each a subscript by itself."""
        subscripts = {i.name for i in self.stage.assign.index if isinstance(i, Var)}
        inner = {a.name for a in self.axes[1 : k + 1]}
        each = self.part.prepared or bool(asked_once(self.stage))
        still = all(map(is_constant, self.axes[1 : k + 1]))
        return each and self.part.scheme == "gpu" and still and inner <= subscripts

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
        before, scalar = self.scalar.hoist(axis, ats) if k == len(self.axes) - 1 else ((), self.scalar)
        whole = self if scalar is self.scalar else ScalarLoops(scalar)
        stmts: list[Stmt] = []
        done = 0
        if self.shape.block and self.part.blocked and axis.extent >= w * many:
            stmts += blocked(self.scalar, axis, k, ats)
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

    def points(self, ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
        lane = self.shape.lane if vectored else None
        stmts: list[Stmt] = []
        for number, at in enumerate(ats):
            index = place_index(self.stage.assign.index, at)
            value = self.scalar.placed(updated(self.stage), at, number % self.scalar.copies)
            stmt = Assign(self.stage.assign.tensor, index, value, lane, stream=self.shape.stream and vectored)
            stmts += under(guard_formula(self.stage, at), stmt)
        return tuple(stmts)
