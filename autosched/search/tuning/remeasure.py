"""The fastest of measured rows once more, in turn.

The optimum that models and strategies are held against must not be the luckiest of many measurements. Rows measured
minutes apart met different machines: the fastest depthwise row, 10 % ahead of the next as it was recorded, was the 35th
of 47 in one race, and the second in the median of three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autosched.device.protocol import Device
from autosched.search.tuning.final import Interleaves, pooled
from autosched.store.records import Measurement
from autosched.tiling.candidate import Candidate

NEAR = 1.5
MOST = 96
"""Rows within this factor of the fastest take part, at most so many of them."""
RACES, ROUNDS = 3, 15
"""A race puts what a kernel packs at other places in memory, which some kernels notice; the median race counts."""


def raced(
    device: Device,
    candidates: Sequence[Candidate],
    measured: Sequence[Measurement],
    rng: np.random.Generator,
    most: int = MOST,
) -> list[Measurement]:
    """The measurements, those of the fastest rows (at most `most`) anew: times in turn, at the pace that the machine
    had before (the median row keeps its time), so that they compare with the rest. As they are where the device cannot
    measure in turn: such devices repeat themselves."""
    found = list(measured)
    times = np.array([m.time_s if m.ok and m.time_s is not None else np.inf for m in measured], np.float64)
    if not np.isfinite(times).any() or not isinstance(device, Interleaves):
        return found
    near = [int(i) for i in np.argsort(times, kind="stable")[:most] if times[i] <= NEAR * times.min()]
    builds = [device.build(candidates[i]) for i in near]
    races: list[list[Measurement]] = [[] for _ in near]
    for _ in range(RACES):
        order = rng.permutation(len(near)).tolist()
        for place, m in zip(order, device.measure_interleaved([builds[p] for p in order], ROUNDS), strict=True):
            races[place].append(m)
    new = [pooled(several) for several in races]
    pace = float(np.median([times[i] / (m.time_s or np.nan) for i, m in zip(near, new, strict=True) if m.ok] or [1.0]))
    for i, m in zip(near, new, strict=True):
        time_s = m.time_s * pace if m.ok and m.time_s is not None else None
        found[i] = replace(m, time_s=time_s, costs_s=measured[i].costs_s)
    return found
