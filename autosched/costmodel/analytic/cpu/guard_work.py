"""How much of a nest's work guards leave: loops over a window stop at a border, rows of a tile are skipped, and tiles
of which no result counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
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
    matrix: those of a register tile up to its last vector that counts, and the steps that some of its sums need, on
    average over iterations of the loops `around`."""
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
    shares = [[_below_zero(nest, k, loops, of_tile) for k in range(len(forms))] for of_tile in each]
    return np.array([prod(1.0 if s is None else s for s in of_forms) for of_forms in shares])[which.reshape(rows)]


def useful_share(
    nest: Nest, names: StepNames, v: Mapping[str, Any], around: Sequence[TileLoopsPart] = ()
) -> float | None:
    """The share of the sums and steps computed in a row of the matrix that guards do not drop; 1 where they drop none,
    None where that is not known."""
    loops = _loops(around)
    counted = [_below_zero(nest, k, loops, None) for k in range(len(_dropping(nest)))]
    if nest.intrinsic.matrices is not None or None in counted:
        return None if counted else 1.0
    issued = float(sums_left(nest, names, v, 1, around)[0])
    return min(1.0, prod(c for c in counted if c is not None) / issued) if issued else None


def least_counted(nest: Nest, around: Sequence[TileLoopsPart] = ()) -> float:
    """The share of results, or of their steps, that count under the guards, at least: tiles without one are not
    computed. A size that is not known may leave none."""
    loops = _loops(around)
    return max(0.0, 1.0 - sum(1.0 - (_below_zero(nest, k, loops, None) or 0.0) for k in range(len(_dropping(nest)))))


def _loops(around: Sequence[TileLoopsPart]) -> tuple[Axis, ...]:
    return tuple(t.axis for part in around for t in part.loops)


def _dropping(nest: Nest) -> list[Affine]:
    """The guards that drop sums, or steps of them, as sums over positions."""
    return [f for f in (*nest.accumulate_sums, *(f for _, f in nest.stepped_sums)) if f is not None]


@of_nest
def _below_zero(
    nest: Nest, number: int, loops: tuple[Axis, ...], tile: tuple[tuple[str, int], ...] | None
) -> float | None:
    """The share of the positions along the axes of the sum of dropping guard number `number` for which it is below 0;
    with `tile` (sizes by axis), for which it is at some position of the register tile. A vector is looked at alone
    where fewer elements count the farther along it is. None where it is not known, or where there are too many."""
    form, of_tile = _dropping(nest)[number], None if tile is None else dict(tile)
    axes = [nest.by_name[n] for n in form.coefficients if n in nest.by_name]
    added = added_around(nest, form, loops)
    if added is None or not all(a.extent for a in axes):
        return None
    places = [_places(axis, form.coefficient(axis.name), of_tile) for axis in axes]
    if prod(len(at) for at, _ in places) * len(added) > MOST_PLACES:
        return None
    total, weight = np.full((1,) * len(axes), form.constant, np.int64), np.ones((1,) * len(axes))
    for d, (axis, (at, shares)) in enumerate(zip(axes, places, strict=True)):
        shape = [len(at) if k == d else 1 for k in range(len(axes))]
        total = total + form.coefficient(axis.name) * at.reshape(shape)
        weight = weight * shares.reshape(shape)
    return float(sum(share * weight[total + n < 0].sum() for n, share in added.items()))


def _places(
    axis: NestAxis, factor: int, of_tile: Mapping[str, int] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Positions of an axis, each with the share of the axis that it stands for: of each stretch of a tile the one at
    which a sum with this factor is the least."""
    alone = axis.unit > 1 and factor > 0
    stretch = 1 if of_tile is None else axis.unit * (1 if alone else of_tile.get(axis.name, 1))
    first = np.arange(0, axis.extent, stretch, dtype=np.int64)
    last = np.minimum(first + stretch, axis.extent)
    return first if factor > 0 else last - 1, (last - first) / axis.extent
