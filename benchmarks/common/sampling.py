"""Samples of calls of some ten milliseconds, and their quartiles. Standard library only."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

SAMPLE_S = 1e-2
"""Calls of one sample last this long together, so that what the other side left in the caches is soon gone."""
SETTLE_S = 4e-3
"""Calls for this long come before, untimed: longer than threads of a library spin when they have nothing to do."""
Times = tuple[float, float, float]
"""Quartiles."""


def repeats_of(call: Callable[[], Any]) -> int:
    """Calls in one sample."""
    once = time_calls(call, 1)
    if once < SAMPLE_S:
        once = min(once, *(time_calls(call, 1) for _ in range(2)))
    return max(1, int(SAMPLE_S / once))


def time_calls(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of one call, over `repeats` of them. Some that are not timed come before: its data comes back into the
    caches, its threads awake, and those of the other side fall asleep."""
    until = time.perf_counter() + SETTLE_S
    call()
    while time.perf_counter() < until:
        call()
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


def quartiles(samples: Sequence[float]) -> Times:
    if len(samples) < 2:
        return samples[0], samples[0], samples[0]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high
