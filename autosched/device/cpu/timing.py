"""How many samples: pure arithmetic on times, so that it can be tested without a clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from autosched.device.job import Effort

FEW = 3
"""Samples of a candidate that is too slow to win."""
ALIKE = 1.25
"""Two batches that differ by more than this factor: other work met one of them, or the first calls of a kernel."""
WARM_S = 2e-3
"""A kernel that has run for less may still be waiting for its data, and is not given up: depthwise kernels of 50 us
were seen to take 150 to 300 us in their first dozen calls, after data of some megabytes were compared."""
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

    `warm_s` is the time of a call made before; it sizes the batches. Batches that last WARM_S together confirm a slow
    one, where the last two are alike or FEW of them say so: one that met other work says nothing of the kernel.
    """
    slow = effort.slower_than_s
    spent_s, seen = 0.0, [warm_s]
    while slow is not None and min(seen) > slow:
        calls = batch(min(seen), effort)  # one call of a microsecond says little
        took_s = run(calls)
        spent_s += took_s
        seen.append(took_s / calls)
        sure = len(seen) > FEW or max(seen[-2:]) <= ALIKE * min(seen[-2:])
        if min(seen) > slow and spent_s >= WARM_S and sure:
            return [min(seen)], "slow"
    calls = batch(min(seen), effort)
    if calls > 1:  # a first call is slower than the rest; size batches by warm ones, and not by one that met other work
        calls = batch(min(*seen, run(calls) / calls), effort)
    samples: list[float] = []
    spent_s = 0.0
    while True:
        took_s = run(calls)
        spent_s += took_s
        samples.append(took_s / calls)
        warm = spent_s >= WARM_S
        if slow is not None and warm and len(samples) >= 2 and min(samples) > slow:
            return samples, "slow"
        if effort.rough_above_s is not None and warm and len(samples) >= FEW and min(samples) > effort.rough_above_s:
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
