"""How much of a nest's work guards leave: loops over a window stop at a border, rows of a tile are skipped, and tiles
of which no result counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.cpu.loops_around import added_around
from autosched.ir.nodes import Axis
from autosched.logic import Affine
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TileLoopsPart
from autosched.tiling.steps import StepNames, tiled_axes
from autosched.tiling.steps.cpu.skip_guarded import bounding, share, skipping_row

MOST_PLACES = 1 << 22
"""Positions that are looked at one by one to see how many count."""


def work_left(nest: Nest, names: StepNames, v: Mapping[str, Any], rows: int) -> npt.NDArray[np.float64]:
    """The part of all intrinsic calls that is issued, for each row of the matrix. An axis has one position in a tile
    where it is not tiled, where its tile is one row, and where rows are skipped."""
    left = np.ones(rows)
    window = [a for a in nest.reduction if a is not nest.depth and bounding(nest, a)]
    if not window:
        return left
    tiled = [a for a in tiled_axes(nest) if not a.intrinsic_axis]
    always = frozenset(a.name for a in nest.rows if a not in tiled)
    skipped = skipping_row(nest)
    one = {a.name: v[names.register(a)] == 1 for a in tiled}
    if skipped is not None:
        one[skipped.name] = one[skipped.name] | (v[names("skip")] == 1)
    for chosen in product((False, True), repeat=len(tiled)):
        here = np.ones(rows, np.bool_)
        for axis, is_one in zip(tiled, chosen, strict=True):
            here &= one[axis.name] == is_one
        if here.any():
            single = always | {a.name for a, is_one in zip(tiled, chosen, strict=True) if is_one}
            left[here] = np.prod([share(nest, a, single) for a in window])
    return left


def sums_left(
    nest: Nest, names: StepNames, v: Mapping[str, Any], rows: int, around: Sequence[TileLoopsPart] = ()
) -> npt.NDArray[np.float64]:
    """The part of all intrinsic calls that is issued where guards drop sums, or steps of them, for each row of the
    matrix: those of a register tile from its first vector that counts to the last, and the steps that some of its sums
    need, on average over iterations of the loops `around`."""
    forms = _dropping(nest)
    if not forms or nest.intrinsic.matrices is not None:
        return np.ones(rows)
    tiled = [a for a in tiled_axes(nest) if any(f.coefficient(a.name) for f in forms)]
    sizes = np.ones((rows, len(tiled) + 1), np.int64)  # one column more: rows differ where no axis is tiled, too
    for k, axis in enumerate(tiled):
        sizes[:, k] = v[names.register(axis)]
    chosen, which = np.unique(sizes, axis=0, return_inverse=True)
    each = [tuple((a.name, int(n)) for a, n in zip(tiled, row[:-1], strict=True)) for row in chosen]
    loops = _loops(around)
    shares = [_share_issued(nest, loops, of_tile) for of_tile in each]
    return np.array([1.0 if s is None else s for s in shares])[which.reshape(rows)]


def useful_share(
    nest: Nest, names: StepNames, v: Mapping[str, Any], around: Sequence[TileLoopsPart] = ()
) -> float | None:
    """The share of the sums and steps computed in a row of the matrix that guards do not drop; 1 where they drop none,
    None where that is not known."""
    if not drops(nest):
        return 1.0
    if None in (*nest.accumulate_sums, *(f for _, f in nest.stepped_sums)):
        return None
    counted = _share_issued(nest, _loops(around), None)
    if nest.intrinsic.matrices is not None or counted is None:
        return None
    issued = float(sums_left(nest, names, v, 1, around)[0])
    return min(1.0, counted / issued) if issued else None


def least_counted(nest: Nest, around: Sequence[TileLoopsPart] = ()) -> float:
    """The share of results, or of their steps, that count under the guards: tiles without one are not computed. A size
    that is not known may leave none."""
    return _share_issued(nest, _loops(around), None) or 0.0 if _dropping(nest) else 1.0


def _loops(around: Sequence[TileLoopsPart]) -> tuple[Axis, ...]:
    return tuple(t.axis for part in around for t in part.loops)


def drops(nest: Nest) -> bool:
    """Whether guards drop sums of a nest, or steps of them."""
    return bool(nest.accumulate_sums or nest.stepped_sums)


def _dropping(nest: Nest) -> list[Affine]:
    """The guards that drop sums, or steps of them, as sums over positions."""
    return [f for f in (*nest.accumulate_sums, *(f for _, f in nest.stepped_sums)) if f is not None]


@of_nest
def _share_issued(nest: Nest, loops: tuple[Axis, ...], tile: tuple[tuple[str, int], ...] | None) -> float | None:
    """The share of the positions along the axes of dropping guards at which all of these hold; with `tile` (sizes by
    axis), of those that a register tile computes since they hold at some of its positions. None where that is not
    known, or where there are too many."""
    forms = _dropping(nest)
    axes = [a for a in nest.axes if any(f.coefficient(a.name) for f in forms)]
    added = added_around(nest, forms, loops)
    if added is None or not all(a.extent for a in axes):
        return None
    cells = [_Cells.of(a, None if tile is None else dict(tile)) for a in axes]
    if prod(len(c.shares) for c in cells) * len(added) > MOST_PLACES:
        return None
    weight = np.ones((1,) * len(axes))
    for d, cell in enumerate(cells):
        weight = weight * _along(cell.shares, d, len(axes))
    of_vectors = next((d for d, c in enumerate(cells) if c.apart and _bounds(nest, axes[d])), None)
    tiles = [_total(form, axes, cells) for form in forms]
    found = 0.0
    for shift, part in added.items():
        issued = np.ones((1,) * len(axes), np.bool_)
        for total, n in zip(tiles, shift, strict=True):
            issued = issued & (total + n < 0)
        if of_vectors is not None:
            issued = issued & _vectors(nest, axes, cells, of_vectors, shift)
        found += part * float((weight * issued).sum())
    return found


def _bounds(nest: Nest, axis: NestAxis) -> bool:
    return not axis.reduction and any(f is not None and f.coefficient(axis.name) for f in nest.accumulate_sums)


def _vectors(
    nest: Nest, axes: list[NestAxis], cells: list[_Cells], d: int, shift: tuple[int, ...]
) -> npt.NDArray[np.bool_]:
    """The vectors along an axis that tiles compute: none behind the last that counts, and of tiles whose last one
    counts none in front of the first (`guarded_steps.counted_vectors`)."""
    ending = beginning = last = np.ones((1,) * len(axes), np.bool_)
    forms = [f for f in nest.accumulate_sums if f is not None]
    for form, n in zip(forms, shift, strict=False):  # those of steps come behind
        factor = form.coefficient(axes[d].name)
        if factor > 0:
            ending = ending & (_total(form, axes, cells, {d: cells[d].alone}) + n < 0)
            last = last & (_total(form, axes, cells, {d: cells[d].last}) + n < 0)
        elif factor < 0:
            beginning = beginning & (_total(form, axes, cells, {d: cells[d].alone}) + n < 0)
    return ending & (beginning | ~last)


Ends = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The first and the last position of each stretch of an axis."""


@dataclass(frozen=True)
class _Cells:
    """An axis in stretches that a tile computes or not: `of_tile` is that of the whole tile, `alone` the stretch itself
    (a vector, where a tile has several), `last` that of the tile's last one; `shares`, how much of the axis each is."""

    of_tile: Ends
    alone: Ends
    last: Ends
    shares: npt.NDArray[np.float64]
    apart: bool

    @classmethod
    def of(cls, axis: NestAxis, of_tile: Mapping[str, int] | None) -> _Cells:
        units = 1 if of_tile is None else of_tile.get(axis.name, 1)
        unit = 1 if of_tile is None else axis.unit
        apart = axis.unit > 1 and units > 1
        step = unit if apart else unit * units
        first = np.arange(0, axis.extent, step, dtype=np.int64)
        alone = first, np.minimum(first + step, axis.extent) - 1
        begin = first // (unit * units) * (unit * units)
        end = np.minimum(begin + unit * units, axis.extent) - 1
        return cls((begin, end), alone, (end // step * step, end), (alone[1] - first + 1) / axis.extent, apart)


def _total(
    form: Affine, axes: list[NestAxis], cells: list[_Cells], other: Mapping[int, Ends] = MappingProxyType({})
) -> npt.NDArray[np.int64]:
    """The least that a sum is in each cell: at the best position of its tile, or of what `other` has for an axis."""
    total = np.full((1,) * len(axes), form.constant, np.int64)
    for d, axis in enumerate(axes):
        if factor := form.coefficient(axis.name):
            first, last = other.get(d, cells[d].of_tile)
            total = total + factor * _along(first if factor > 0 else last, d, len(axes))
    return total


def _along(values: npt.NDArray[Any], d: int, axes: int) -> npt.NDArray[Any]:
    """Values along one of several axes."""
    return values.reshape([len(values) if k == d else 1 for k in range(axes)])
