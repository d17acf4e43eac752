"""How many bytes a nest moves into each cache: footprints of its loops, vectorised over rows.

At each level, the outermost loops whose footprint still fits are free to reuse what they hold; every operand is fetched
once for each iteration of the loops outside, except those right outside on which its address does not depend. What one
register tile reads is kept for the next as far as it fits.

A tensor as it lies may fit and not be kept: of rows that lie a power of two apart, parts of rows fall into a few sets
of a cache (2 KiB apart: into two of 64, and 16 of them fill it).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.analysis.access import strides
from autosched.logic import Int, affine
from autosched.tiling.analysis.nontemporal import LINE_BYTES
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps import LOAD, ORDERS, PANELS, StepNames, blocked_axes, tiled_axes
from autosched.tiling.steps.common.computed import element_bytes, loaded
from autosched.tiling.steps.cpu.outer_tile_order import AROUND, WITHIN

Column = npt.NDArray[Any]

@dataclass(frozen=True)
class LoopColumn:
    """One loop of all rows: the axis it walks, its trip count, and how many elements of the axis one trip covers."""

    axis: NestAxis
    trips: Column
    span: Column

    @cached_property
    def covered(self) -> Column:
        """Trips worth of the axis: what is left for the last one may be a part (9 tiles in blocks of 8 are 1.125)."""
        reached = np.minimum(self.span * self.trips, float(self.axis.units * self.axis.unit))
        return np.asarray(np.maximum(1.0, reached / self.span))


def loops_of(
    nest: Nest, names: StepNames, v: Mapping[str, npt.NDArray[np.int64]], order: int, inner: int, lines: int = AROUND
) -> list[LoopColumn]:
    """The loops of rows that share these decisions, outermost first, down to the register tile's own loops."""
    n = len(next(iter(v.values())))
    one = np.ones(n)
    tiled = tiled_axes(nest)
    lanes, rows, depth = blocked_axes(nest)
    blocked = {a.name for a in (lanes, rows) if a}
    loops: list[LoopColumn] = []
    tile = {a.name: v[names.register(a)] * float(a.unit) for a in tiled}
    count = {a.name: v[names.tiles(a)].astype(np.float64) for a in tiled}
    loops += [LoopColumn(a, one * a.units, one) for a in nest.rows if a not in tiled]
    line = [LoopColumn(a, count[a.name], tile[a.name]) for a in tiled if a.name not in blocked]
    loops += line if lines == AROUND else []
    block: dict[str, Column] = {}
    for blocked_axis in (lanes, rows):
        if blocked_axis is not None:
            name = blocked_axis.name
            chosen = v[names.block(blocked_axis)].astype(np.float64)
            block[name] = np.where(chosen == 0, count[name], np.minimum(chosen, count[name]))
    for k in ORDERS[order]:
        found = (lanes, rows, depth)[k]
        if found is None:
            continue
        if found is depth:
            chosen = v[names.block(found)].astype(np.float64)
            span = np.where(chosen == 0, float(found.units), chosen)
            loops.append(LoopColumn(found, np.ceil(found.units / span), span * found.unit))
        else:
            span = block[found.name] * tile[found.name]
            loops.append(LoopColumn(found, np.ceil(count[found.name] / block[found.name]), span))
    pair = (lanes, rows) if inner == 0 else (rows, lanes)
    loops += line if lines == WITHIN else []
    return loops + [LoopColumn(a, block[a.name], tile[a.name]) for a in pair if a is not None]


_Steps = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class _TensorDimension:
    """A dimension of an operand's tensor, `stride` bytes from one place to the next. `steps`: for each program axis in
    its subscript the nest axis that carries it and how far a step moves; None where the subscript is no sum of axes."""

    steps: _Steps | None
    extent: float
    stride: int


class Footprints:
    """Bytes of a nest's operands that loops touch, while their spans grow an axis at a time: what the other axes say is
    kept from one question to the next."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self._memory = {operand: _memory_of(nest, operand) for operand in nest.mapping.operands}
        self._axes: dict[str, tuple[Column, dict[str, Column]]] = {}
        self._reached: dict[tuple[str, int], tuple[list[Column], Column]] = {}

    def of(self, operand: str, panel: bool | npt.NDArray[np.bool_], span: Mapping[str, Column]) -> Column:
        """Bytes of the operand that loops with these spans (elements per nest axis) touch; `panel` says where it is
        packed in the order in which it is read."""
        mine, size, dimensions = self._memory[operand]
        if panel is True:
            return np.asarray(prod((span[name] for name in mine), start=size))
        total: Column | float = size
        for number, dimension in enumerate(dimensions):
            if dimension.steps is None:
                total = total * dimension.extent
            elif dimension.steps:
                inmost = size if number == len(dimensions) - 1 else 0.0
                total = total * self._reach((operand, number), dimension, inmost, span)
        if panel is False:
            return np.asarray(total)
        return np.where(panel, prod((span[name] for name in mine), start=size), total)

    def pitch(self, operand: str, page: int) -> int:
        """Bytes between the places in a cache at which rows of the operand's tensor begin; 0: it has no rows. Beyond a
        page a cache knows addresses of its own."""
        rows = self._memory[operand][2][:-1]
        return gcd(*(d.stride for d in rows if d.steps != ()), page) if any(d.steps != () for d in rows) else 0

    def room(
        self, operand: str, panel: bool | npt.NDArray[np.bool_], touched: Column, pitch: int, span: Mapping[str, Column]
    ) -> Column:
        """Bytes of a cache that are taken by what is `touched` of a tensor as it lies: for each run of neighbours as
        much as is `pitch`. Nothing where it is read from a panel."""
        _, size, dimensions = self._memory[operand]
        last = dimensions[-1]
        run: Column | float = size
        if last.steps is None:
            run = size * last.extent
        elif last.steps:
            run = size * self._reach((operand, len(dimensions) - 1), last, size, span)
        crowded = np.where(touched > run, touched * np.maximum(1.0, pitch / run), touched)
        return np.where(panel, 0.0, crowded) if panel is not False else crowded

    def _reach(
        self, place: tuple[str, int], dimension: _TensorDimension, inmost: float, span: Mapping[str, Column]
    ) -> Column:
        """Elements that are touched of the dimension at `place`, an operand's. `inmost`: bytes of an element where the
        dimension is the one whose elements lie side by side; then whole lines count."""
        steps, extent = dimension.steps or (), dimension.extent
        spans = [span[axis] for _, axis, _ in steps]
        known = self._reached.get(place)
        if known is not None and all(map(operator.is_, known[0], spans)):
            return known[1]
        reach = [c * (self._members(axis, span[axis])[name] - 1.0) for name, axis, c in steps]
        found = np.minimum(sum(reach[1:], start=reach[0] + 1.0), extent)
        if inmost:
            found = np.minimum(found + _ends(found, extent, inmost), extent)
        self._reached[place] = spans, found
        return found

    def _members(self, axis: str, span: Column) -> dict[str, Column]:
        """How much of each program axis a span of the nest axis covers."""
        known = self._axes.get(axis)
        if known is not None and known[0] is span:
            return known[1]
        found: dict[str, Column] = {}
        members, left = self.nest.by_name[axis].members, span
        for name, _, extent in reversed(members):
            found[name] = np.minimum(left, extent)
            if name != members[0][0]:
                left = np.maximum(1.0, np.ceil(left / extent))
        self._axes[axis] = span, found
        return found


def _ends(run: Column, extent: float, element: float) -> Column:
    """Elements that runs of so many, in rows of `extent`, fetch besides: where runs begin somewhere in a line, on
    average all but what every beginning and end is a multiple of."""
    line = max(1, int(LINE_BYTES // element))  # a power of two
    common = run.astype(np.int64) | (int(extent) | line)
    return line - (common & -common).astype(np.float64)  # of all three the lowest bit: what divides them


@of_nest
def _memory_of(nest: Nest, operand: str) -> tuple[tuple[str, ...], float, tuple[_TensorDimension, ...]]:
    """The nest axes that an operand varies with, the bytes of its element, and each dimension of its tensor."""
    read = nest.mapping.operands[operand]
    tensor = nest.mapping.program.tensors[read.tensor]
    mine = nest.operand_axes(operand)
    carried = {name: a.name for a in mine for name, _, _ in a.members}
    found = []
    for part, extent, stride in zip(read.index, tensor.extents, strides(tensor.extents), strict=True):
        form = affine(part) if isinstance(part, Int) else None
        moved = {} if form is None else {name: abs(c) for name, c in form.coefficients.items() if name in carried}
        steps = None if form is None else tuple((name, carried[name], c) for name, c in moved.items())
        found.append(_TensorDimension(steps, float(extent), int(stride * tensor.dtype.bytes)))
    size = element_bytes(nest, operand) if loaded(nest, operand) else float(tensor.dtype.bytes)
    return tuple(a.name for a in mine), size, tuple(found)


def traffic(
    nest: Nest, names: StepNames, v: Mapping[str, npt.NDArray[np.int64]], capacities: tuple[float, ...], page: int
) -> list[Column]:
    """Bytes fetched (and written back) into each level of the given capacities in bytes, for every row; `page` is in
    bytes too."""
    orders, inners = v[names("order")], v[names("inner")]
    n = len(orders)
    result = [np.zeros(n) for _ in capacities]
    lines = v[names("lines")] if names("lines") in v else np.full(n, AROUND)
    groups = orders * 4 + inners * 2 + lines
    packed = {o.name: np.isin(v[names.pack(o.name)], (*PANELS, LOAD)) for o in nest.intrinsic.inputs}
    for group in np.unique(groups).tolist():
        rows = np.flatnonzero(groups == group)
        part = {k: c[rows] for k, c in v.items()}
        panel = {o: some[rows] for o, some in packed.items()}
        loops = loops_of(nest, names, part, group // 4, group // 2 % 2, group % 2)
        for total, some in zip(result, _group(nest, names, part, panel, capacities, loops, page), strict=True):
            total[rows] = some
    return result


def _group(
    nest: Nest,
    names: StepNames,
    v: Mapping[str, npt.NDArray[np.int64]],
    packed: Mapping[str, npt.NDArray[np.bool_]],
    capacities: tuple[float, ...],
    loops: list[LoopColumn],
    page: int,
) -> list[Column]:
    """`packed`: which rows read an input from a panel."""
    n = len(v[names("order")])
    operands = [o.name for o in nest.intrinsic.operands.values()]
    panel: dict[str, bool | npt.NDArray[np.bool_]] = dict.fromkeys(operands, False)
    for operand, some in packed.items():
        panel[operand] = bool(some[0]) if some.all() or not some.any() else some
    tiled = {a.name for a in tiled_axes(nest)}
    span: dict[str, Column] = {a.name: np.ones(n) for a in nest.axes}
    for a in nest.reduction:
        if a is not nest.blocked_reduction:
            span[a.name] = np.ones(n) * a.units * a.unit
    for loop in loops:  # innermost span of each axis
        span[loop.axis.name] = loop.span
    assert tiled <= set(span)
    # Footprints with the loops outside position d fixed, from the innermost position outwards.
    touched = Footprints(nest)
    mine = {o: {a.name for a in nest.operand_axes(o)} for o in operands}
    pitch = {o.name: touched.pitch(o.name, page) for o in nest.intrinsic.inputs if panel[o.name] is not True}
    pitch = {o: between for o, between in pitch.items() if between > LINE_BYTES}
    prints: list[dict[str, Column]] = [{o: touched.of(o, panel[o], span) for o in operands}]
    rooms = {o: [touched.room(o, panel[o], prints[0][o], between, span)] for o, between in pitch.items()}
    for loop in reversed(loops):
        extent = float(loop.axis.units * loop.axis.unit)
        span = span | {loop.axis.name: np.minimum(loop.span * loop.trips, extent)}
        grown = loop.axis.name
        prints.append({o: touched.of(o, panel[o], span) if grown in mine[o] else prints[-1][o] for o in operands})
        for o, taken in rooms.items():
            room = touched.room(o, panel[o], prints[-1][o], pitch[o], span) if grown in mine[o] else taken[-1]
            taken.append(room)
    prints.reverse()  # prints[d]: loops d.. run inside
    totals = [sum(p.values()) for p in prints]
    if not loops:  # a single tile: of what does not stay in a warm cache from call to call
        return [np.asarray(totals[0] * (1.0 - resident(totals[0], capacity)) + np.zeros(n)) for capacity in capacities]
    written = nest.intrinsic.accumulator.name
    visits = np.ones(n)
    if nest.blocked_reduction is not None:
        visits = v[names(f"blocks_{nest.blocked_reduction.name}")].astype(np.float64)
    moved = {o: _moved(nest, o, loops, [p[o] for p in prints]) for o in operands}
    moved[written] = [np.where(visits > 1, 2.0, 1.0) * bytes_in for bytes_in in moved[written]]
    fetched = [sum((m[d] for m in moved.values()), start=np.zeros(n)) for d in range(len(loops))]
    walked = {o.name: _anew(mine[o.name], loops, prints[-1][o.name]) for o in nest.intrinsic.inputs}
    anew = np.maximum(sum(walked.values(), start=np.zeros(n)) + moved[written][-1], fetched[-1])
    anew_of = {o: np.maximum(walked[o], moved[o][-1]) for o in rooms}
    result = []
    for capacity in capacities:
        fractions = _hit_fractions(totals, capacity, n)
        total = _fetched(fractions, fetched, anew)
        for o, taken in rooms.items():
            if np.max(taken[-1]) > capacity:
                larger = [np.maximum(t, r) for t, r in zip(totals, reversed(taken), strict=True)]
                crowded = _hit_fractions(larger, capacity, n)
                more = [after - before for after, before in zip(crowded, fractions, strict=True)]
                total = total + np.maximum(_fetched(more, moved[o], anew_of[o]), 0.0)
        result.append(total)
    return result


def _anew(mine: Set[str], loops: Sequence[LoopColumn], tile: Column) -> Column:
    """Bytes that are fetched where each register tile fetches all that it touches of an operand with axes `mine`."""
    return np.asarray(prod((loop.covered if loop.axis.name in mine else loop.trips for loop in loops), start=tile))


def _moved(nest: Nest, operand: str, loops: Sequence[LoopColumn], prints: Sequence[Column]) -> list[Column]:
    """For each loop, outermost first: the bytes fetched where a cache holds what the loops inside it touch."""
    mine = {a.name for a in nest.operand_axes(operand)}
    found = []
    for d in range(1, len(prints)):
        # From one turn of the innermost of these loops to the next, what both touch (lines of a window) stays.
        slides = loops[d - 1].axis.name in mine
        factor, reused = prints[d - 1 if slides else d], not slides
        for loop in reversed(loops[: d - 1 if slides else d]):
            if loop.axis.name in mine:
                reused = False
                factor = factor * loop.covered
            elif not reused:
                factor = factor * loop.trips
        found.append(factor)
    return found


def _hit_fractions(totals: Sequence[Any], capacity: float, n: int) -> list[Column]:
    """For each loop, outermost first, the share of accesses that find in a cache what runs inside of it, and no more;
    last the share that does not even find what the register tile before has read. What fits is there from the call
    before: caches are warm. Of a tile whose own walk along the reduction outgrows a cache nothing is there for the
    next."""
    hits: list[Column] = []
    for total in totals[:-1]:
        share = resident(total, capacity)
        hits.append(np.maximum(share, hits[-1]) if hits else np.broadcast_to(share, (n,)))
    fractions = [*(more - less for less, more in pairwise(hits)), 1.0 - hits[-1]]
    return [*fractions, fractions[-1] * (1.0 - resident(totals[-1], capacity))]


def _fetched(fractions: Sequence[Column], moved: Sequence[Column], anew: Column) -> Column:
    """Bytes that come into a cache: `moved` where it holds what runs inside of each loop, `anew` where each register
    tile fetches what it reads."""
    *found, lost = fractions
    total = np.asarray(found[0] * moved[0])
    for share, bytes_in in zip(found[1:], moved[1:], strict=True):
        total += share * bytes_in
    total += lost * (anew - moved[-1])
    return total


def resident(footprint: Any, capacity: float) -> Column:
    """The share of a footprint that a cache keeps: it loses what outgrows it as (capacity / footprint) to the power of
    4. Caches are no strict LRU, and what is a little larger than one still finds much of itself there (f32 512³ on
    Zen 5: 2 to 8 rank its schedules alike)."""
    share = np.asarray(capacity / np.maximum(footprint, 1.0))
    np.minimum(share, 1.0, out=share)
    share *= share
    share *= share
    return share
