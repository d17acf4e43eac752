"""What no box holds: whole outputs of a kernel against those of the first kernel that was right in all boxes.

The two may differ by what both may be off. Where they differ by more, one of them is wrong, and the interpreter decides
which: it computes a box around the element at which they differ most (`device.correctness.sampled`, `around`), and both
are compared there. So a kernel that is right is never refused for another's mistake, and one that is wrong anywhere is
found as soon as another is right there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ROOM = 4.0
"""Times the largest tolerance of what the interpreter computed: both kernels may be off, other sums may be larger."""
PART = 1 << 22


def furthest(got: npt.NDArray[Any], known: npt.NDArray[Any], tolerance: float | None) -> int | None:
    """The element that differs most, if by more than `ROOM` times the tolerance (None: at all). Flat arrays; NaN agrees
    with NaN, an infinity with itself."""
    worst, at = 0.0, None
    room = 0.0 if tolerance is None else ROOM * tolerance
    for start in range(0, known.size, PART):
        g, k = got[start : start + PART], known[start : start + PART]
        if np.array_equal(_bits(g), _bits(k)):
            continue
        if tolerance is None:  # integers of 64 bits do not fit a float
            return start + int(np.argmax(g != k)) if (g != k).any() else None
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(g.astype(np.float64) - k.astype(np.float64))
            same = (g == k) | (np.isnan(error) & np.isnan(g.astype(np.float64)) & np.isnan(k.astype(np.float64)))
        error[np.isnan(error)] = np.inf
        error[same] = 0.0
        index = int(np.argmax(error))
        if error[index] > room and error[index] > worst:
            worst, at = float(error[index]), start + index
    return at


def _bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.view(np.dtype(f"u{values.itemsize}"))
