"""Past the end of a reduction: which operands hold the fills there, and which may hold anything.

An intrinsic that takes four of a window's three positions adds nothing for the fourth where one factor is zero there,
whatever integer the other one is. So a mask stays on the loads of one operand, and the loads of the other are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from autosched.logic import TRUE, Int, Var, evaluate, free_vars, interval
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.steps.common.layout import flat_offset, offset_within, runs, scattered, tensor_extents, vectorises


@of_nest
def holders(nest: Nest, axis: NestAxis) -> frozenset[str]:
    """The operands that hold fills past the end of a reduction axis. One set of those that add nothing whatever stands
    beside them is enough: constants, laid out before the run, else those with the cheapest masks. All of them where
    floats are multiplied (what stands beside a zero could be a NaN) or no such set is known."""
    padded = nest.mapping.padded.get(axis.intrinsic_axis or "", ())
    able = {o for o in padded if axis in nest.operand_axes(o)}
    sets = [s for s in nest.mapping.neutral if s and able.issuperset(s)]
    if not sets or any(o.dtype.is_float for o in nest.intrinsic.operands.values()):
        return frozenset(o.name for o in nest.intrinsic.inputs)
    return frozenset(min(sets, key=lambda s: _cost(nest, s)))


def _cost(nest: Nest, operands: Iterable[str]) -> tuple[int, int, int]:
    """Masks on these operands: how many are set in the timed call, how many of them on registers that no one load
    fills (of those that hold matrices, on registers that rows of the tensor fill: others come from copies that are
    filled up anyway), and on how many registers."""
    program = nest.mapping.program
    timed = [o for o in operands if not program.known(nest.mapping.operands[o].tensor)]
    registers = (prod(a.units for a in nest.operand_axes(o)) for o in timed)
    masked = nest.intrinsic.matrices is not None
    return len(timed), sum(vectorises(nest, o) == masked for o in timed), sum(registers)


@of_nest
def freed(nest: Nest, operand: str) -> tuple[NestAxis, ...]:
    """Reduction axes of the intrinsic past whose end the operand is loaded like anywhere else, and may hold anything.
    Not those along which a mask leaves out whole loads: it costs nothing, and they are not made."""
    mine = (a for a in nest.operand_axes(operand) if a.reduction and a.intrinsic_axis)
    return tuple(a for a in mine if operand not in holders(nest, a) and not _by_runs(nest, operand, a))


def _by_runs(nest: Nest, operand: str, axis: NestAxis) -> bool:
    """Whether a register is put together from several runs of neighbours, each at one place along the axis: channels of
    one pixel, then those of the next one in the window."""
    if nest.intrinsic.matrices is not None:
        return False  # a matrix is loaded whole
    if vectorises(nest, operand) or scattered(nest, operand) or runs(nest, operand) is None:
        return False
    n = nest.intrinsic.operands[operand].elements
    lane = {"e": np.arange(n, dtype=np.int64)}
    offset = flat_offset(nest, operand, Var("e"))
    there = np.broadcast_to(np.asarray(evaluate(offset, dict.fromkeys(free_vars(offset), 0) | lane)), (n,))
    places = np.asarray(evaluate(nest.lane_coordinates(operand, Var("e"))[axis.intrinsic_axis or ""], lane))
    order = np.argsort(there)
    neighbours = np.diff(there[order]) == 1
    return not np.any(neighbours & (np.diff(np.broadcast_to(places, (n,))[order]) != 0))


def rounded(nest: Nest, operand: str) -> tuple[NestAxis, ...]:
    """Axes that copies of an operand's tensor cover to the end of the last register, so that no load of one is masked:
    lanes, past whose end sums are never stored, and reductions past whose end it may hold anything. A register that
    holds a matrix has fused ones too, and those past whose end a copy holds zeros."""
    matrix = nest.intrinsic.matrices is not None
    on = [a for a in nest.operand_axes(operand) if a.intrinsic_axis and (len(a.members) == 1 or (matrix and a.members))]
    free = freed(nest, operand)
    return tuple(a for a in on if not a.reduction or a in free or (matrix and _zeros_behind(nest, operand, a)))


def cut_by_ends(nest: Nest, operand: str) -> tuple[NestAxis, ...]:
    """Axes of the intrinsic whose end cuts a register of the operand."""
    names = nest.intrinsic.operand_axes[operand]
    return tuple(a for a in nest.axes if a.intrinsic_axis and a.intrinsic_axis in names and a.extent % a.unit)


def last_tiles(
    nest: Nest, names: StepNames, operand: str, values: Mapping[str, Any]
) -> Iterator[tuple[NestAxis, Any, Any]]:
    """Axes whose end cuts a register of the operand that holds a matrix, with the units of a register tile and the
    number of whole tiles: the registers of the last one come from a panel of their own. `values` are a row's, or
    columns of many rows."""
    for axis in cut_by_ends(nest, operand) if nest.intrinsic.matrices is not None else ():
        size = values[names.register(axis)] if axis in tiled_axes(nest) else 1
        yield axis, size, axis.full_units // size


def reach_ends(nest: Nest, operand: str) -> bool:
    """Whether copies of an operand's tensor reach to the end of every register: none is cut by the end of an axis."""
    held = rounded(nest, operand)
    return all(a in held for a in cut_by_ends(nest, operand))


def copied_extents(nest: Nest, operand: str) -> tuple[int, ...]:
    """The shape of a copy of an operand's tensor with a border."""
    return tuple(high - min(0, low) + 1 for low, high in spans(nest, operand))


@of_nest
def copied_offset(nest: Nest, operand: str) -> Int:
    """`flat_offset` in that copy (its border's beginning aside)."""
    return offset_within(nest, operand, Var("e"), copied_extents(nest, operand))


def _zeros_behind(nest: Nest, operand: str, axis: NestAxis) -> bool:
    """Whether the axis is one dimension of the tensor, all of it: what a copy has past its end is a border."""
    (name, low, extent), *others = axis.members
    index = nest.mapping.operands[operand].index
    dims = [d for d, part in enumerate(index) if isinstance(part, Int) and name in free_vars(part)]
    if others or low or len(dims) != 1 or index[dims[0]] != Var(name):
        return False
    return extent == tensor_extents(nest, operand)[dims[0]]


def spans(nest: Nest, operand: str, grouped: str | None = None) -> list[tuple[int, int]]:
    """The first and last position that each subscript of an operand takes, partial registers counted whole (but along
    the axis `grouped`, unless a register holds a matrix: groups are filled up as they are copied)."""
    ranges = nest.ranges
    for axis in rounded(nest, operand):
        if axis.name == grouped and nest.intrinsic.matrices is None:
            continue
        (name, low, extent), *_ = axis.members  # the outermost one of those that are fused goes on
        ranges = ranges | {name: (low, low + (axis.units * axis.unit - 1) // (axis.extent // extent))}
    return [interval(i, ranges) for i in nest.mapping.operands[operand].index if isinstance(i, Int)]


@of_nest
def runs_on(nest: Nest, operand: str) -> tuple[NestAxis, ...]:
    """Reduction axes past whose end the operand may hold anything, and whose last register is read whole from the
    tensor itself: no guard speaks of the operand, and all of the register lies inside the tensor."""
    axes = tuple(a for a in freed(nest, operand) if len(a.members) <= 1)
    if nest.guarded[operand] != TRUE:
        return ()
    reached = {m: (low, low + a.units * a.unit - 1) for a in axes for m, low, _ in a.members}
    index = [i for i in nest.mapping.operands[operand].index if isinstance(i, Int)]
    spans = (interval(i, nest.ranges | reached) for i in index)
    inside = all(low >= 0 and high < n for (low, high), n in zip(spans, tensor_extents(nest, operand), strict=True))
    return axes if inside else ()
