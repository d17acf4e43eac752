"""How much of a nest's work guards leave: loops over a window stop at a border, rows of a tile are skipped."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import StepNames, tiled_axes
from autosched.tiling.steps.cpu.skip_guarded import bounding, share, skipping_row


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
