"""How much of a nest's work guards leave: loops over a window stop at a border, rows of a tile are skipped, and tiles
of which no result counts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.logic import Affine
from autosched.tiling.plans.nest import Nest
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


def least_counted(nest: Nest) -> float:
    """The share of results that count under the guards on results, at least: tiles without one are not computed. A size
    that is not known may leave none."""
    left = 1.0
    for form in nest.accumulate_sums:
        if form is not None:
            left -= 1.0 - _share(nest, form)
    return max(0.0, left)


def _share(nest: Nest, form: Affine) -> float:
    """Of the positions along the axes of a sum, the share for which it is below 0; none where they are too many."""
    extents = [nest.by_name[n].extent if n in nest.by_name else 0 for n in form.coefficients]
    if not 0 < prod(extents) <= MOST_PLACES:
        return 0.0
    total = np.full((1,) * len(extents), form.constant, np.int64)
    for d, (n, factor) in enumerate(zip(extents, form.coefficients.values(), strict=True)):
        shape = [n if k == d else 1 for k in range(len(extents))]
        total = total + factor * np.arange(n, dtype=np.int64).reshape(shape)
    return float((total < 0).mean())
