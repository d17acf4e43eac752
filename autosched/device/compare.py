"""A kernel's output against the oracle's, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """The element that came nearest to, or furthest past, its tolerance; `index` is flat. `ok` says which.

    `wrong` counts elements past their tolerance; `got` and `want` are that element's values.
    """

    ok: bool
    index: int
    error: float
    tolerance: float
    got: float
    want: float
    wrong: int = 0


def compare(got: Array, want: Array, tolerance: Array | None) -> Difference:
    """Flat arrays of one length. Without a tolerance every element must be equal.

    NaN agrees with NaN alone, an infinity with the same infinity alone.
    """
    if not got.size:
        return Difference(True, 0, 0.0, 0.0, 0.0, 0.0)
    if tolerance is None:
        differs = got != want
        wrong = int(np.count_nonzero(differs))
        index = int(np.argmax(differs)) if wrong else 0
        g, w = int(got[index]), int(want[index])  # exact: 64-bit integers do not fit a float
        return Difference(not wrong, index, float(abs(g - w)), 0.0, float(g), float(w), wrong)
    g64 = got.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(g64 - want)
        if (error <= tolerance).all() and np.isfinite(tolerance).all():  # the usual case; a NaN is never below
            index = int(np.argmax(_ratio(error, tolerance)))
            return Difference(
                True, index, float(error[index]), float(tolerance[index]), float(g64[index]), float(want[index])
            )
        same = (g64 == want) | (np.isnan(g64) & np.isnan(want))
        error[same] = 0.0
        error[np.isnan(error)] = np.inf
        past = error - tolerance
    past[np.isnan(past)] = np.inf  # an infinite error against an infinite tolerance proves nothing
    past[same] = -tolerance[same]
    bad = past > 0
    wrong = int(np.count_nonzero(bad))
    index = int(np.argmax(past if wrong else np.where(same, -1.0, _ratio(error, tolerance))))
    if not wrong and same.all():
        index = 0
    return Difference(
        not wrong, index, float(error[index]), float(tolerance[index]), float(g64[index]), float(want[index]), wrong
    )


def _ratio(error: Array, tolerance: Array) -> Array:
    return np.divide(error, tolerance, out=np.zeros_like(error), where=tolerance > 0)
