"""A kernel's output against the oracle's, element by element.

What no box of a large output holds is compared with what the loops as written compute (`device.cpu.plain_loops`), and
as far as these did not run with the whole output of the first kernel that was right in all boxes (`furthest`). The two
may differ by what both may be off. Where they differ by more, one of them is wrong, and the interpreter decides which:
it computes a box around the element at which they differ most (`device.correctness.sampled`, `around`), and both are
compared there. So a kernel that is right is never refused for another's mistake, and one that is wrong anywhere is
found where the loops ran, and elsewhere as soon as another is right there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.device.job import Outcome

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


class Wrong(Exception):
    """The outputs differ; carries the outcome's fields."""

    def __init__(
        self,
        message: str,
        difference: Difference | None = None,
        index: list[int] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.difference, self.index, self.extra = difference, index, extra or {}

    def outcome(self, costs: dict[str, float]) -> Outcome:
        """What the candidate amounts to."""
        d = self.difference
        detail = {"index": self.index, "wrong_elements": d.wrong} if d else {}
        error, tolerance = (d.error, d.tolerance) if d else (None, None)
        return Outcome("wrong", (), error, tolerance, str(self), costs, detail | self.extra)


def right(
    samples: Sequence[float], difference: Difference | None, costs: dict[str, float], extra: dict[str, Any]
) -> Outcome:
    """What a candidate that is right and was timed amounts to."""
    error, tolerance = (difference.error, difference.tolerance) if difference else (0.0, 0.0)
    return Outcome("ok", tuple(samples), error, tolerance, "", costs, extra)


def scale(tolerance: Array) -> Array | None:
    """One over each tolerance, by which `compare` is quicker; None where it cannot be (a tolerance of 0, or none)."""
    if not (np.isfinite(tolerance) & (tolerance > 0)).all():
        return None
    with np.errstate(over="ignore"):
        found: Array = 1.0 / tolerance
    return found if np.isfinite(found).all() else None


def compare(got: Array, want: Array, tolerance: Array | None, scale: Array | None = None) -> Difference:
    """Flat arrays of one length. Without a tolerance every element must be equal. `scale` is the tolerance's, if any.

    NaN agrees with NaN alone, an infinity with the same infinity alone; with either where no error is known (what is
    divided by a zero of either sign).
    """
    if not got.size:
        return Difference(True, 0, 0.0, 0.0, 0.0, 0.0)
    if tolerance is None:
        differs = got != want
        wrong = int(np.count_nonzero(differs))
        index = int(np.argmax(differs)) if wrong else 0
        g, w = int(got[index]), int(want[index])  # exact: 64-bit integers do not fit a float
        return Difference(not wrong, index, float(abs(g - w)), 0.0, float(g), float(w), wrong)
    if scale is not None and (near := _within(got, want, tolerance, scale)) is not None:
        return near
    g64 = got.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(g64 - want)
        if (error <= tolerance).all() and np.isfinite(tolerance).all():  # the usual case; a NaN is never below
            index = int(np.argmax(_ratio(error, tolerance)))
            return Difference(
                True, index, float(error[index]), float(tolerance[index]), float(g64[index]), float(want[index])
            )
        same = (g64 == want) | (np.isnan(g64) & np.isnan(want))
        same |= np.isinf(g64) & np.isinf(want) & np.isinf(tolerance)
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


def _within(got: Array, want: Array, tolerance: Array, scale: Array) -> Difference | None:
    """The usual case in three passes: the element nearest to its tolerance, if all are clearly within."""
    with np.errstate(invalid="ignore", over="ignore"):
        share = np.subtract(got, want, dtype=np.float64)
        np.abs(share, out=share)
        np.multiply(share, scale, out=share)
    index = int(np.argmax(share))  # that of the first NaN, if there is one
    if not share[index] < 1.0:
        return None
    g, w = float(got[index]), float(want[index])
    return Difference(True, index, abs(g - w), float(tolerance[index]), g, w)


def _ratio(error: Array, tolerance: Array) -> Array:
    return np.divide(error, tolerance, out=np.zeros_like(error), where=tolerance > 0)


ROOM = 4.0
"""Times the largest tolerance of what the interpreter computed: both kernels may be off, other sums may be larger."""
PART = 1 << 22


@dataclass(frozen=True, slots=True)
class Closeness:
    """How far two right kernels may be apart anywhere: `room`, infinite where no bound is known. `either`: an infinity
    agrees with that of the other sign."""

    room: float
    either: bool = False


def closeness(pieces: Sequence[tuple[Array, Array | None]]) -> Closeness:
    """That of an output of which these elements and their tolerances are known. What is NaN or infinite, of which no
    tolerance is known, must be so in both; a number without one says that any will do."""
    largest, either = 0.0, False
    for want, allowed in pieces:
        assert allowed is not None
        numbers = np.isfinite(want)
        largest = max(largest, float(allowed.max(initial=0.0, where=numbers)))
        either = either or bool(np.isinf(allowed[np.isinf(want)]).any())
    return Closeness(ROOM * largest, either)


def furthest(got: npt.NDArray[Any], known: npt.NDArray[Any], close: Closeness | None) -> int | None:
    """The element that differs most, if by more than two right ones may (None: at all). Flat arrays; NaN agrees with
    NaN, an infinity with itself."""
    worst, at = 0.0, None
    if close is not None and np.isinf(close.room):
        return None
    for start in range(0, known.size, PART):
        g, k = got[start : start + PART], known[start : start + PART]
        if np.array_equal(_bits(g), _bits(k)):
            continue
        if close is None:  # integers of 64 bits do not fit a float
            return start + int(np.argmax(g != k)) if (g != k).any() else None
        g, k = g.astype(np.float64), k.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(g - k)
        if not (error <= close.room).all():
            same = (g == k) | (np.isnan(g) & np.isnan(k))
            same |= np.isinf(g) & np.isinf(k) if close.either else False
            error[np.isnan(error)] = np.inf
            error[same] = 0.0
            index = int(np.argmax(error))
            if error[index] > close.room and error[index] > worst:
                worst, at = float(error[index]), start + index
    return at


def _bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.view(np.dtype(f"u{values.itemsize}"))
