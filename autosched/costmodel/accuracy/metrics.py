"""How good a model is on recorded trials: rank correlation, pairwise accuracy, and what its first picks lose.

Rows that a model predicts alike are in no order: what depends on one is the mean over all of them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from autosched.costmodel.learned.learner import load

Floats = npt.NDArray[np.float64]


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Rank correlation, ties at their mean rank; NaN where a side is constant.

    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    load("scipy.stats")  # here: it takes a good part of a second
    from scipy.stats import rankdata

    x, y = rankdata(np.asarray(a, np.float64)), rankdata(np.asarray(b, np.float64))
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    return round(float(x @ y / scale), 12) if scale > 0 else float("nan")


def pairwise_accuracy(predicted: npt.ArrayLike, measured: npt.ArrayLike) -> float:
    """Share of pairs with different measured times that are predicted in the right order; a predicted tie counts half.

    >>> pairwise_accuracy([1, 2, 3], [1, 3, 2])
    0.6666666666666666
    """
    p, m = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    return pairwise_of(kendall(p, m), p, m)


def pairwise_of(tau: float, predicted: Floats, measured: Floats) -> float:
    """Pairwise accuracy where Kendall's tau-b is known."""
    pairs, told = _told_apart(measured), _told_apart(predicted)
    if not pairs or not told:
        return 0.5 if pairs else float("nan")
    right = round(tau * math.sqrt(pairs) * math.sqrt(told))  # less those in wrong order
    return (right / pairs + 1) / 2


def _told_apart(values: Floats) -> int:
    """Pairs of different values."""
    _, counts = np.unique(values, return_counts=True)
    n = len(values)
    return n * (n - 1) // 2 - int(np.sum(counts * (counts - 1) // 2))


def best_k_regret(predicted: npt.ArrayLike, measured: npt.ArrayLike, k: int) -> float:
    """1 - fastest of all / fastest among the k predicted fastest. See `best_at`.

    >>> best_k_regret([1, 2, 3], [4.0, 2.0, 1.0], k=2)
    0.5
    """
    return 1.0 - best_at(predicted, measured, k)


def best_at(predicted: npt.ArrayLike, measured: npt.ArrayLike, k: int) -> float:
    """Speed of the fastest among the k predicted fastest, as a share of the fastest of all. Where the k-th and later
    ones are predicted alike, the mean over all ways to choose among these, so that order in a file counts for nothing.
    Rows of infinite time failed; NaN where all did.

    >>> best_at([1, 2, 3], [4.0, 2.0, 1.0], k=2)
    0.5
    >>> best_at([1, 1, 1, 1], [1.0, 2.0, 2.0, 4.0], k=1)
    0.5625
    """
    p, m = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    if not np.isfinite(m).any():
        return float("nan")
    sure, tied, more = _first(p, k)
    times = np.sort(m[tied])
    # The i-th fastest of n is the fastest of `more` drawn with probability C(n - i, more - 1) / C(n, more).
    chance, left = np.zeros(len(times)), 1.0
    for i in range(len(times)):
        chance[i] = left * more / (len(times) - i) if more <= len(times) - i else 0.0
        left -= chance[i]
    best = np.minimum(times, m[sure].min()) if sure.any() else times
    return float(chance @ (m.min() / best))


def recall_at(predicted: npt.ArrayLike, measured: npt.ArrayLike, k: int) -> float:
    """Share of the k fastest rows that are among the k predicted fastest; of rows predicted alike as `best_at`. Rows of
    infinite time failed, and none of them is among the fastest; NaN where all did.

    >>> recall_at([1, 2, 3, 4], [1, 3, 2, 4], k=2)
    0.5
    """
    p, m = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    fastest = np.argsort(m, kind="stable")[: min(k, int(np.isfinite(m).sum()))]
    if not len(fastest):
        return float("nan")
    sure, tied, more = _first(p, k)
    found = sure[fastest].sum() + more * tied[fastest].sum() / max(1, int(tied.sum()))
    return float(found / len(fastest))


def _first(p: Floats, k: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], int]:
    """Rows that are surely among the k of least value, those alike of which some are, and how many of these."""
    k = min(k, len(p))
    last = np.partition(p, k - 1)[k - 1]
    sure = p < last
    return sure, p == last, k - int(sure.sum())


def kendall(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Kendall's tau-b: pairs in the same order less pairs in the other, ties accounted for; NaN where a side is
    constant.

    >>> kendall([1, 2, 3], [1, 3, 2])
    0.333333333333
    """
    load("scipy.stats")
    from scipy.stats import kendalltau

    return round(float(kendalltau(np.asarray(a, np.float64), np.asarray(b, np.float64)).statistic), 12)


def coverage(log_s: npt.ArrayLike, sigma: npt.ArrayLike, measured: npt.ArrayLike) -> float:
    """Share of measured times within 1.2816 standard deviations of what was predicted: 0.8 where these are right."""
    error = np.abs(np.log(np.asarray(measured, np.float64)) - np.asarray(log_s, np.float64))
    return float(np.mean(error <= 1.2816 * np.asarray(sigma, np.float64)))
