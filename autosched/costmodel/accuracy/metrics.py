"""How good a model is on recorded trials: rank correlation, pairwise accuracy, and what its first picks lose."""

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
    load("scipy.stats")
    from scipy.stats import kendalltau

    p, m = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    pairs, told = _told_apart(m), _told_apart(p)
    if not pairs or not told:
        return 0.5 if pairs else float("nan")
    right = round(float(kendalltau(p, m).statistic) * math.sqrt(pairs) * math.sqrt(told))  # less those in wrong order
    return (right / pairs + 1) / 2


def _told_apart(values: Floats) -> int:
    """Pairs of different values."""
    _, counts = np.unique(values, return_counts=True)
    n = len(values)
    return n * (n - 1) // 2 - int(np.sum(counts * (counts - 1) // 2))


def best_k_regret(predicted: npt.ArrayLike, measured: npt.ArrayLike, k: int) -> float:
    """1 - fastest of all / fastest among the k predicted fastest (the first k of equals in order).

    >>> best_k_regret([1, 2, 3], [4.0, 2.0, 1.0], k=2)
    0.5
    """
    p, m = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    picks = np.argsort(p, kind="stable")[:k]
    return float(1 - m.min() / m[picks].min())


def best_at(predicted: npt.ArrayLike, measured: npt.ArrayLike, k: int) -> float:
    """Speed of the fastest among the k predicted fastest, as a share of the fastest of all.

    >>> best_at([1, 2, 3], [4.0, 2.0, 1.0], k=2)
    0.5
    """
    return 1.0 - best_k_regret(predicted, measured, k)


def recall_at(predicted: npt.ArrayLike, measured: npt.ArrayLike, k: int) -> float:
    """Share of the k fastest rows that are among the k predicted fastest.

    >>> recall_at([1, 2, 3, 4], [1, 3, 2, 4], k=2)
    0.5
    """
    p, m = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    first, fastest = np.argsort(p, kind="stable")[:k], np.argsort(m, kind="stable")[:k]
    return len(set(first.tolist()) & set(fastest.tolist())) / min(k, len(m))


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
