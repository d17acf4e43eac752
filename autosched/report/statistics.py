"""Statistics of paired runs: intervals over seeds, or over spaces and seeds together; tests of the same means; and how
many more seeds or spaces would decide what is undecided.

A mean's interval is a symmetric bootstrap-t (Hall 1988, doi 10.1214/aos/1176350933): means of samples drawn anew, each
in units of its own standard error, say how far the mean may be off. It is never narrower than Student's. Its p-value is
of the same t, so it is 0.05 or less just where the 95 % interval leaves out 0. Over several spaces, spaces are drawn
anew and then seeds in each of them; what spaces differ by is part of the interval. Assumed: seeds are drawn alike and
independently, spaces are a sample of those that are spoken of, and each space has as many seeds as any other.
`benchmarks.coverage` measures how often such intervals hold the truth: less often where a rare seed is far off. The
interval of a median is that of order statistics, which assumes nothing more.
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
LEVEL, POWER = 0.95, 0.8
FEWEST = 5
"""Units from which resamples differ enough to learn from; of fewer, intervals are Student's alone."""
MOST = 10_000
_ALIKE = 1e-9
"""Deviations below this share of the values are rounding."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval. Infinite where runs found nothing; the ends are NaN where there is none."""

    value: float
    low: float
    high: float

    def within(self, least: float = float("-inf"), most: float = float("inf")) -> Interval:
        """The part of the interval that the quantity can reach at all."""
        if np.isnan(self.low):
            return self
        return Interval(self.value, max(least, self.low), min(most, self.high))


def spanned(interval: Interval, show: Show) -> str:
    """`0.98 [0.97, 0.99]`, each number by `show`; the number alone where there is no interval."""
    if np.isnan(interval.low):
        return show(interval.value)
    return f"{show(interval.value)} [{show(interval.low)}, {show(interval.high)}]"


@dataclass(frozen=True)
class MeanEstimate:
    """A mean with its interval and the p-value of its being 0, over `count` `units`: "seeds" of one space, or "spaces".

    `deviation` is the standard deviation of the units. NaN where they are no replicates: one unit, or all alike.
    `within` is the mean variance over seeds in a space, `seeds` how many each space has.
    """

    value: float
    low: float
    high: float
    p: float
    units: str
    count: int
    deviation: float
    within: float = 0.0
    seeds: int = 0

    @property
    def interval(self) -> Interval:
        return Interval(self.value, self.low, self.high)

    @property
    def widening(self) -> float:
        """How many times wider the interval is than Student's: 1 for normally distributed units."""
        from scipy.stats import t

        student = float(t.ppf((1 + LEVEL) / 2, self.count - 1)) * self.deviation / self.count**0.5
        return float((self.high - self.value) / student)


def median_curve(curves: npt.ArrayLike) -> tuple[Floats, ...]:
    """Median over seeds and its 95 % interval for each column of `curves` (seeds, columns): value, low, high. The ends
    are order statistics: least and greatest of 5 seeds hold the median in 94 of 100 cases, of fewer seeds less often.

    >>> value, low, high = median_curve([[4.0, 3.0], [6.0, 3.0], [5.0, 3.0]])
    >>> value.tolist(), low.tolist(), high.tolist()
    ([5.0, 3.0], [4.0, 3.0], [6.0, 3.0])
    """
    table = np.sort(np.asarray(curves, np.float64), axis=0)
    n, left = len(table), 0
    while left + 1 < (n + 1) // 2 and 2 * sum(comb(n, k) for k in range(left + 2)) <= (1 - LEVEL) * 2**n:
        left += 1
    return np.median(table, axis=0), table[left], table[n - 1 - left]


def mean_curve(curves: npt.ArrayLike, rng: np.random.Generator) -> tuple[Floats, ...]:
    """Mean over seeds and its 95 % interval for each column of `curves` (seeds, columns): value, low, high, which are
    NaN where seeds are no replicates."""
    table = np.asarray(curves, np.float64)
    value, half, _ = _studentised(table, _resampled(table, rng))
    return value, value - half, value + half


def mean(values: npt.ArrayLike, rng: np.random.Generator) -> Interval:
    """Mean over seeds with its interval; of paired differences, that is the paired one."""
    return estimate([np.asarray(values, np.float64)], rng).interval


def estimate(spaces: Sequence[npt.ArrayLike], rng: np.random.Generator) -> MeanEstimate:
    """The mean of values by space and seed: over the seeds where there is one space, else over spaces and seeds, each
    space counting alike.

    >>> found = estimate([[1.0, 2.0, 3.0, 2.0, 1.0, 3.0]], np.random.default_rng(0))
    >>> found.units, found.value, found.low > 0, found.p < 0.05
    ('seeds', 2.0, True, True)
    """
    tables = [np.asarray(s, np.float64) for s in spaces]
    if len(tables) == 1:
        units, said, within, seeds = tables[0], "seeds", 0.0, len(tables[0])
        drawn = _resampled(units[:, None], rng)
    else:
        units, said, seeds = np.array([t.mean() for t in tables]), "spaces", min(map(len, tables))
        within = float(np.mean([t.var(ddof=1) for t in tables])) if seeds > 1 else float("nan")
        drawn = _two_stages(tables, rng)
    value, half, p = (float(x[0]) for x in _studentised(units[:, None], drawn))
    deviation = float(units.std(ddof=1)) if len(units) > 1 else float("nan")
    return MeanEstimate(value, value - half, value + half, p, said, len(units), deviation, within, seeds)


def _resampled(table: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Mean and variance of each column in samples of its rows drawn anew: shape (RESAMPLES, columns)."""
    n = len(table)
    # A resample is how often each row was drawn, so its moments are products of matrices.
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
    centred = table - table.mean(axis=0)
    means = drawn @ centred
    return means + table.mean(axis=0), np.maximum(drawn @ centred**2 - means**2, 0.0) * n / max(1, n - 1)


def _two_stages(tables: Sequence[Floats], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """As `_resampled`, of the spaces' means: spaces drawn anew, then seeds in each."""
    count = len(tables)
    chosen = rng.integers(0, count, (RESAMPLES, count))
    units = np.empty(chosen.shape)
    for number, table in enumerate(tables):
        at = np.nonzero(chosen == number)
        units[at] = table[rng.integers(0, len(table), (len(at[0]), len(table)))].mean(axis=1)
    return units.mean(axis=1)[:, None], units.var(axis=1, ddof=1)[:, None]


def _studentised(table: Floats, drawn: tuple[Floats, Floats]) -> tuple[Floats, Floats, Floats]:
    """For each column its mean, half the width of its interval, and the p-value of a mean of 0. NaN where all is alike
    or one row is all there is. `drawn` are means and variances of resamples."""
    from scipy.stats import t

    n, value = len(table), table.mean(axis=0)
    half, p = np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
    if n < 2:
        return value, half, p
    error = table.std(axis=0, ddof=1) / np.sqrt(n)
    means, variances = drawn
    student = float(t.ppf((1 + LEVEL) / 2, n - 1))
    for column in np.flatnonzero(error > _ALIKE * np.maximum(1e-300, np.abs(table).max(axis=0))):
        found = abs(value[column]) / error[column]
        quantile, p[column] = student, 2 * float(t.sf(found, n - 1))
        errors = np.sqrt(variances[:, column] / n)
        fine = errors > _ALIKE * error[column]  # a resample of one value has no error to be measured in
        if n >= FEWEST and fine.any():
            off = np.abs(means[fine, column] - value[column]) / errors[fine]
            quantile = max(quantile, float(np.quantile(off, LEVEL, method="inverted_cdf")))
            p[column] = max(p[column], float(np.mean(off >= found)))
        half[column] = quantile * error[column]
    return value, half, p


def needed(deviation: float, difference: float, level: float = 1 - LEVEL) -> int | None:
    """How many units (seeds, or spaces) a t test at this level would need to see this mean difference with probability
    0.8; None beyond MOST.

    >>> needed(deviation=1.0, difference=1.0)
    10
    """
    if not difference or not np.isfinite(deviation):
        return None
    low, high = 2, MOST + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if visible(deviation, middle, level) <= abs(difference) else (middle + 1, high)
    return low if low <= MOST else None


def visible(deviation: float, count: int, level: float = 1 - LEVEL) -> float:
    """The least mean difference that a t test of so many units sees with probability POWER."""
    from scipy.stats import t

    return float((t.ppf(1 - level / 2, count - 1) + t.ppf(POWER, count - 1)) * deviation / np.sqrt(count))


def superiority(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Probability that `a` is the larger of a pair, ties counting half.

    >>> superiority([3, 2, 1, 1], [1, 1, 1, 2])
    0.625
    """
    order = np.sign(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return float(np.mean((order + 1) / 2))


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
