"""Statistics of paired runs: bootstrap intervals over seeds, sign tests, and their correction for many comparisons.

Seeds are drawn with replacement, the same ones for all strategies, since runs are paired by seed. Nothing is assumed of
the distributions: times have long tails, and a best-so-far curve is a staircase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Show: TypeAlias = Callable[[float], str]
RESAMPLES = 2000
LEVEL = 0.95
_COLUMNS = 64  # columns resampled at once: 2000 resamples of 20 seeds are 20 MB


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval. Infinite where runs found nothing."""

    value: float
    low: float
    high: float


def spanned(interval: Interval, show: Show) -> str:
    """`0.98 [0.97, 0.99]`, each number by `show`."""
    return f"{show(interval.value)} [{show(interval.low)}, {show(interval.high)}]"


def median_curve(curves: npt.ArrayLike, rng: np.random.Generator, resamples: int = RESAMPLES) -> tuple[Floats, ...]:
    """Median over seeds and its 95 % interval for each column of `curves` (seeds, columns): value, low, high.

    >>> value, low, high = median_curve([[4.0, 3.0], [6.0, 3.0], [5.0, 3.0]], np.random.default_rng(0))
    >>> value.tolist(), low.tolist(), high.tolist()
    ([5.0, 3.0], [4.0, 3.0], [6.0, 3.0])
    """
    table = np.asarray(curves, np.float64)
    chosen = rng.integers(0, len(table), (resamples, len(table)))
    low, high = np.empty(table.shape[1]), np.empty(table.shape[1])
    for left in range(0, table.shape[1], _COLUMNS):
        columns = slice(left, left + _COLUMNS)
        low[columns], high[columns] = _interval(np.median(table[:, columns][chosen], axis=1))
    return np.median(table, axis=0), low, high


def mean_curve(curves: npt.ArrayLike, rng: np.random.Generator) -> tuple[Floats, ...]:
    """As `median_curve`, of the mean: value, low, high."""
    table = np.asarray(curves, np.float64)
    # A resample is how often each seed was drawn, so its mean is a product of matrices.
    drawn = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), size=RESAMPLES) / len(table)
    low, high = _interval(drawn @ table)
    return table.mean(axis=0), low, high


def mean(values: npt.ArrayLike, rng: np.random.Generator, resamples: int = RESAMPLES) -> Interval:
    """Mean over seeds with its bootstrap interval; of paired differences, that is the paired bootstrap."""
    found = np.asarray(values, np.float64)
    chosen = rng.integers(0, len(found), (resamples, len(found)))
    low, high = _interval(found[chosen].mean(axis=1))
    return Interval(float(found.mean()), float(low), float(high))


def superiority(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Probability that `a` is the larger of a pair, ties counting half.

    >>> superiority([3, 2, 1, 1], [1, 1, 1, 2])
    0.625
    """
    order = np.sign(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return float(np.mean((order + 1) / 2))


def sign_test(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Two-sided p-value of the exact sign test of pairs; ties say nothing and drop out.

    >>> sign_test([2, 2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1])
    0.03125
    """
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    won, lost = int(np.sum(x > y)), int(np.sum(x < y))
    n = won + lost
    tail = sum(comb(n, k) for k in range(min(won, lost) + 1)) / float(2**n)
    return min(1.0, 2 * tail)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for having looked at all of them (Holm 1979, Scandinavian Journal of Statistics 6).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def _interval(resampled: Floats) -> tuple[Floats, Floats]:
    # Without interpolation, which makes NaN of two infinities.
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return low, high
