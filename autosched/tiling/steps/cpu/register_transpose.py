"""Turned stores: register tiles whose lanes lie apart in memory, while neighbouring rows of the tile lie side by side.

Lanes on the channels of an image whose channels are outermost would be stored element by element. A few rows of the
tile are transposed in registers instead, so that each lane's elements of all rows leave in one store. It is no
decision: two rows save stores already. The code is in `codegen/lower/common/transposed_stores.py`.
"""

from __future__ import annotations

from math import log2

import numpy as np
import numpy.typing as npt

from autosched.logic import TRUE
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import tiled_axes
from autosched.tiling.steps.common.layout import row_stride, vectorises

MOST_ROWS = 8
"""Rows that are transposed together: twice as many would need twice the registers for a quarter fewer instructions."""


def transposed_row(nest: Nest) -> NestAxis | None:
    """The row of the register tile along which the output's elements are neighbours; None where a register of the
    output is stored whole as it is, or cannot be cut in two as often as there are rows."""
    accumulator = nest.intrinsic.accumulator
    n = accumulator.elements
    if nest.intrinsic.matrices is not None:
        return None
    if n & (n - 1) or accumulator.dtype.bits < 8 or nest.written != TRUE or vectorises(nest, accumulator.name):
        return None
    rows = [a for a in tiled_axes(nest) if not a.intrinsic_axis]
    return next((a for a in rows if row_stride(nest, accumulator.name, a) == accumulator.dtype.bytes), None)


def chunks(rows: int, lanes: int) -> list[tuple[int, int, int]]:
    """(first row, rows, rows with those that fill it up to a power of two) of each group that is transposed together.

    >>> chunks(7, 16), chunks(14, 16), chunks(5, 4)
    ([(0, 7, 8)], [(0, 8, 8), (8, 6, 8)], [(0, 4, 4), (4, 1, 1)])
    """
    most = min(MOST_ROWS, lanes)
    return [(k, min(most, rows - k), 1 << (min(most, rows - k) - 1).bit_length()) for k in range(0, rows, most)]


def store_cycles(rows: npt.NDArray[np.float64], alone: float) -> npt.NDArray[np.float64]:
    """Cycles that storing one register takes, as one of so many rows: shuffles, and stores of parts of it. `alone` are
    those of one that is stored lane by lane, a cycle each."""
    most = int(rows.max(initial=0))
    return np.asarray([_cycles(count, alone) for count in range(most + 1)])[rows.astype(np.int64)]


def _cycles(rows: int, alone: float) -> float:
    if rows < 1:
        return 0.0
    groups = chunks(rows, int(alone))
    return sum(size * log2(size) + alone if size > 1 else alone for _, _, size in groups) / rows
