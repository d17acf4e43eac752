"""Numbers from files of others: finite, or an error that says which."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt


def finite(value: Any) -> float:
    """The number. Raises ValueError for what is none, or is not finite."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    except OverflowError:  # an integer that no float reaches
        pass
    raise ValueError(f"{str(value)[:80]!r} is not a finite number")


def floats(values: Sequence[float | None]) -> npt.NDArray[np.float64]:
    """An array, NaN where there is no number."""
    return np.array([np.nan if v is None else v for v in values], np.float64)


def spread_of(samples_s: Sequence[float]) -> float | None:
    """(q75 - q25) / median of samples, or None for none."""
    if not samples_s:
        return None
    low, middle, high = (float(q) for q in np.percentile(samples_s, [25, 50, 75]))
    return (high - low) / middle if middle > 0 else None
