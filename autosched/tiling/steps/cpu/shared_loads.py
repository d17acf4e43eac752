"""Shared loads: the innermost reduction loops run inside the register tile, and equal loads there are one.

In a sliding window, neighbouring outputs read the same inputs: output x at window position s wants what output x + 1
wants at s - 1. Where both loops are unrolled, such a register is loaded once and used for all of them, while the
registers that vary with the window (the weights) stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from autosched.logic import TRUE, Affine, Bool, Const, Int, Var, affine, all_of, minimum, where
from autosched.logic.walk import substitute_int
from autosched.machine.target import Target
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.common.register_tile import held_tiles, register_limit, registers_of
from autosched.tiling.steps.cpu.pack import PANELS

WHOLE_BODY_LIMIT = 200
"""The most instructions of one wholly unrolled register tile: 5 x 4 outputs of a window of 9."""
EACH = 0
LOADS = Handle("loads", EACH)


@dataclass(frozen=True)
class StreamedWindow:
    """Reduction axes that are unrolled whole (innermost last), and the input operand that streams through the tile.

    `shared` are pairs (tiled axis, reduction axis) that move along one subscript of it; `outer` are the tiled axes that
    it varies with besides: they go outermost, so that the other operands' registers serve one of their units only.
    """

    axes: tuple[NestAxis, ...]
    operand: str
    shared: tuple[tuple[NestAxis, NestAxis, int, int], ...]
    outer: tuple[NestAxis, ...]

    @property
    def steps(self) -> int:
        return prod(a.units for a in self.axes)

    def loads(self, nest: Nest, operand: str, names: StepNames) -> Int:
        """Registers of an operand that one register tile loads."""
        mine = nest.operand_axes(operand)
        pairs = self.shared if operand == self.operand else ()
        total: Int = Const(1)
        for tiled, window, stride, dilation in pairs:
            total = total * _distinct(Var(names.register(tiled)), window.units, stride, dilation)
        counted = {a.name for pair in pairs for a in pair[:2]}
        for axis in (*tiled_axes(nest), *self.axes):
            if axis in mine and axis.name not in counted:
                total = total * (axis.units if axis.reduction else Var(names.register(axis)))
        return total

    def sliding(self, nest: Nest, names: StepNames) -> Int:
        """Registers of the streaming operand that are in use at once where the depth is merely unrolled, step after
        step: a compiler then loads equal ones once, and keeps all of a step's but the first, which the next has no use
        for."""
        total: Int = Const(1)
        along = {tiled.name: stride == dilation for tiled, axis, stride, dilation in self.shared if axis is nest.depth}
        for axis in (a for a in tiled_axes(nest) if a in nest.operand_axes(self.operand)):
            count = Var(names.register(axis))
            total = total * (where(count > 1, count - 1, count) if along.get(axis.name) else count)
        return total

    def live(self, nest: Nest, operand: str, names: StepNames) -> Int:
        """Registers of an input operand that are in use at once."""
        total: Int = Const(1)
        if operand != self.operand:
            mine = nest.operand_axes(operand)
            for axis in (*(a for a in tiled_axes(nest) if a not in self.outer), *self.axes):
                if axis in mine:
                    total = total * (axis.units if axis.reduction else Var(names.register(axis)))
        return total


@of_nest
def window(nest: Nest, count: int) -> StreamedWindow | None:
    """The window of the `count` innermost reduction axes; None where no two loads of a tile coincide, or where nothing
    is left of one of the axes to unroll."""
    if nest.depth is None or count > len(nest.reduction):
        return None
    inward = (*(a for a in nest.reduction if a is not nest.depth), nest.depth)
    axes = inward[len(inward) - count :]
    for operand in nest.intrinsic.inputs:
        shared = _shared(nest, operand.name, axes)
        if shared:
            moving = {tiled.name for tiled, *_ in shared}
            mine = nest.operand_axes(operand.name)
            outer = tuple(a for a in tiled_axes(nest) if a in mine and a.name not in moving)
            return StreamedWindow(axes, operand.name, shared, outer)
    return None


def offered(nest: Nest, target: Target) -> dict[int, StreamedWindow]:
    """The windows that a target's registers may hold, by value of the decision; none where nothing is shared, where
    registers hold matrices, where steps are left out, or where loads compute."""
    if nest.intrinsic.matrices is not None or nest.stepped != TRUE or nest.computed:
        return {}
    found = ((k, window(nest, k)) for k in range(1, len(nest.reduction) + 1))
    return {k: w for k, w in found if w is not None and w.steps <= register_limit(nest, target)}


def shared_loads(nest: Nest, target: Target, names: StepNames) -> Step:
    """`loads`: every step loads its own registers (`each`), or the reduction axes that the value names are unrolled and
    equal loads shared. No decision where that saves nothing."""
    limit = register_limit(nest, target)
    windows = offered(nest, target)
    if not windows or nest.depth is None:
        return Step("shared loads")
    loads, accumulators = Var(names(LOADS.name)), names.var("accumulators")
    wide = {o.name: registers_of(nest, o, target) for o in nest.intrinsic.operands.values()}
    registers: Int = names.var("registers")
    body: Int = accumulators
    for k, found in windows.items():
        registers = where(loads.eq(k), _live_registers(nest, found, wide, names), registers)
        body = where(loads.eq(k), accumulators * found.steps, body)
    packed = all_of(*(loads.ne(k) | ~_in_panel(found, names) for k, found in windows.items()))
    derived: dict[str, Int] = {}
    merged_fits: list[Rule] = []
    if EACH + 1 in windows:  # the depth alone
        found, merged = windows[EACH + 1], names("merged_registers")
        derived[merged] = _merged_registers(nest, found, wide, names)
        alone = all_of(loads.eq(EACH), Var(names("unroll")) > 1, ~_in_panel(found, names))
        sentence = f"{{{merged}}} vector registers > {limit}, with loads that steps share"
        merged_fits.append(Rule(merged, alone.implies(Var(merged) <= limit), sentence))
    shared = loads > EACH
    cut = nest.blocked_reduction or nest.depth
    uncut = loads.is_in(k for k, found in windows.items() if cut in found.axes)
    shared_registers, whole_body = names("shared_registers"), names("whole_body")
    derived |= {shared_registers: registers, whole_body: body}
    labels = ("each", *(" ".join(a.name for a in w.axes) for w in windows.values()))
    many = f"{{{shared_registers}}} vector registers > {limit}"
    long = f"{{{whole_body}}} instructions in one unrolled tile > {WHOLE_BODY_LIMIT}"
    return Step(
        "shared loads",
        (Decision(loads.name, (EACH, *windows), labels),),
        (
            Rule(shared_registers, Var(shared_registers) <= limit, many),
            Rule(whole_body, Var(whole_body) <= WHOLE_BODY_LIMIT, long),
            Rule(names(LOADS.name), packed, "a panel holds each register where it is used: no two are one"),
            *merged_fits,
        ),
        derived,
        dict.fromkeys((names("unroll"), *([names("prefetch")] if nest.lanes else [])), shared)
        | {names.block(cut): shared if cut is nest.depth else uncut},
    )


def _in_panel(found: StreamedWindow, names: StepNames) -> Bool:
    return Var(names.pack(found.operand)).is_in(PANELS)


def _live_registers(nest: Nest, found: StreamedWindow, wide: Mapping[str, int], names: StepNames) -> Int:
    """Vector registers in use at once where the window's axes are unrolled; `wide`: those of each operand's own."""
    total = names.var("accumulators") * wide[nest.intrinsic.accumulator.name]
    for o in nest.intrinsic.inputs:
        total = total + found.live(nest, o.name, names) * wide[o.name]
    return total


def _merged_registers(nest: Nest, found: StreamedWindow, wide: Mapping[str, int], names: StepNames) -> Int:
    """The same where steps that are unrolled for another reason share their loads."""
    total = names.var("accumulators") * wide[nest.intrinsic.accumulator.name]
    for o in nest.intrinsic.inputs:
        streams = o.name == found.operand
        held = found.sliding(nest, names) if streams else held_tiles(nest, tiled_axes(nest), o.name, names)
        total = total + held * wide[o.name]
    return total


def _shared(nest: Nest, operand: str, axes: tuple[NestAxis, ...]) -> tuple[tuple[NestAxis, NestAxis, int, int], ...]:
    """(tiled axis, reduction axis, their steps) for each subscript that one of either moves and that takes some value
    at two of their positions. () where an axis moves several subscripts, or one is not affine."""
    forms = subscripts(nest, operand)
    if forms is None:
        return ()
    tiled = [a for a in tiled_axes(nest) if a.units > 1]
    found = []
    for form in forms:
        over = [a for a in (*tiled, *axes) if a.units > 1 and form.coefficient(a.name)]
        if any(other.coefficient(a.name) for a in over for other in forms if other is not form):
            return ()
        match over:
            case [along, across] if along in tiled and across in axes:
                steps = form.coefficient(along.name), form.coefficient(across.name)
                if saves(across.units, *steps):
                    found.append((along, across, *steps))
    return tuple(found)


def subscripts(nest: Nest, operand: str) -> tuple[Affine, ...] | None:
    """An operand's subscripts over units of nest axes, at the first element of a register; None where one is not
    affine."""
    read = nest.mapping.operands[operand]
    axes = nest.at({a.name: Var(a.name) * a.unit for a in nest.axes})
    forms = [affine(substitute_int(i, axes)) for i in read.index if isinstance(i, Int)]
    return None if any(f is None for f in forms) else tuple(f for f in forms if f is not None)


def saves(window: int, stride: int, dilation: int) -> bool:
    """Whether `stride * x + dilation * s` takes some value twice, s < window."""
    if dilation and stride % dilation == 0:
        return abs(stride // dilation) < window
    return bool(stride) and dilation % stride == 0 and window > 1


def _distinct(tiles: Int, window: int, stride: int, dilation: int) -> Int:
    """How many values `stride * x + dilation * s` takes, x < tiles, s < window; one step divides the other."""
    if stride % dilation == 0:
        return minimum((tiles - 1) * abs(stride // dilation) + window, tiles * window)
    return minimum(tiles + abs(dilation // stride) * (window - 1), tiles * window)
