"""How many samples: pure arithmetic on times, so that it can be tested without a clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from autosched.device.job import Effort

_WARM = 0.9  # a batch this much shorter than what was before: it is still getting faster

FEW = 3
"""Samples of a candidate that is too slow to win."""
Sampler = Callable[[int], float]
"""Takes a number of calls, makes them, and says how long they took in seconds."""


def batch(call_s: float, effort: Effort) -> int:
    """Calls in one sample."""
    return max(1, math.ceil(effort.sample_s / max(call_s, 1e-9)))


def half_width(samples: Sequence[float]) -> float:
    """How well the median is known, relative to it: 1.57 · IQR / √n (McGill, Tukey, Larsen 1978, notched box plots)."""
    if len(samples) < 4:
        return math.inf
    q1, median, q3 = quartiles(samples)
    return 1.57 * (q3 - q1) / math.sqrt(len(samples)) / median if median > 0 else math.inf


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
    return q1, median, q3


def spread(samples: Sequence[float]) -> float | None:
    """(q75 - q25) / median; None for fewer than two samples."""
    if len(samples) < 2:
        return None
    q1, median, q3 = quartiles(samples)
    return (q3 - q1) / median if median > 0 else None


def sample(run: Sampler, effort: Effort, warm_s: float) -> tuple[list[float], str]:
    """Times of one call, a sample each, and why sampling stopped: `stable`, `budget`, `most`, `rough` or `slow`.

    `warm_s` is the time of a call made before; it sizes the batches, and batches confirm a slow one: caches may still
    be filling, and a kernel of 46 us was seen to take 150 us in its second and third call.
    """
    slow = effort.slower_than_s
    while slow is not None and warm_s > slow:
        calls = batch(warm_s, effort)  # one call of a microsecond says little
        again_s = run(calls) / calls
        if again_s > slow and again_s > _WARM * warm_s:
            return [again_s], "slow"
        warm_s = again_s
    calls = batch(warm_s, effort)
    if calls > 1:  # a first call is slower than the rest; size batches by warm ones
        calls = batch(run(calls) / calls, effort)
    samples: list[float] = []
    spent_s = 0.0
    while True:
        took_s = run(calls)
        spent_s += took_s
        samples.append(took_s / calls)
        if slow is not None and len(samples) >= 2 and min(samples) > slow:
            return samples, "slow"
        if effort.rough_above_s is not None and len(samples) >= FEW and min(samples) > effort.rough_above_s:
            return samples, "rough"
        if len(samples) < effort.fewest:
            if spent_s > 4 * effort.budget_s and len(samples) >= 3:
                return samples, "budget"
            continue
        if half_width(samples) < effort.tolerance:
            return samples, "stable"
        if spent_s > effort.budget_s:
            return samples, "budget"
        if len(samples) >= effort.most:
            return samples, "most"
