"""`DriftCorrection`: tells a slow trial from a slow machine by timing a known kernel once more.

Neighbours and clocks change a machine for stretches of many trials: on a shared server seven trials of a row took twice
as long, among them all that were tried of the best tile, and of another study the first 24. A trial that meets such a
stretch would count as slow for good, so it is measured against what the known kernel takes just then.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from autosched.device.cpu.timing import Sampler, batch
from autosched.device.job import Effort

CLOSE = 0.25
"""Levels nearer to 1 are left alone. To correct by every level, from 0.05 on, did harm: on a noisy server winners of 48
studies were 2.8 % from the best on average, and 2.1 % without."""
SPAN_S = 2e-3
"""What the kernel's samples may take, as far as the fewest of them do not take longer."""
FEWEST, MOST = 2, 3
FASTER = 0.9
"""A trial this much faster is the known kernel from then on."""
Take = Callable[[], tuple[list[float], str]]
"""Samples of the trial, seconds of a call, and why sampling stopped."""


@dataclass
class _Known:
    """A kernel and what its fastest sample took: a slow machine slows that one too, and a process that had the core for
    a moment does not. `calls` in a sample of it."""

    run: Sampler
    usual_s: float
    calls: int


@dataclass
class DriftCorrection:
    """Levels are how much slower the machine is than when it was first looked at; `last` is the last trial's."""

    last: float = 1.0
    _known: _Known | None = None

    def paced(self, run: Sampler, take: Take, effort: Effort) -> tuple[list[float], str, float]:
        """The samples of `take` as they had been at level 1, why that stopped, and the level. `run` calls the trial.

        Only a trial far from the known kernel makes it worth a look, one that would take its place, or one in a stretch
        that was noticed: a faster one may be as far from it as the machine is from level 1. Where the level has
        changed, nobody knows whether it did so before the samples or after: they are taken again, and the level that is
        nearer to 1 counts.
        """
        samples, why = take()
        level = self._level(samples)
        if not _close(level, 1.0) and not _close(level, self.last):
            samples, why = take()
            level = min(level, self._level(samples), key=lambda found: abs(found - 1))
        self.last = told = 1.0 if _close(level, 1.0) else level
        # At another level a trial's own time is only as good as that: a mistake would be the measure of the next one.
        if told == 1.0:
            least_s = min(samples) / min(level, 1.0)  # others make a look longer, never shorter
            if self._leads(least_s):
                self._known = _Known(run, least_s, batch(min(samples), effort))
        return [s / told for s in samples], why, told

    def _leads(self, least_s: float) -> bool:
        """Whether a trial should be the known kernel."""
        return self._known is None or least_s < FASTER * self._known.usual_s

    def _level(self, samples: list[float]) -> float:
        known = self._known
        if known is None:
            return 1.0
        near = _close(statistics.median(samples), known.usual_s) and not self._leads(min(samples))
        if near and _close(self.last, 1.0):
            return 1.0
        known.run(known.calls)  # its own data comes back into the caches: the trial pushed it out
        count = max(FEWEST, min(MOST, int(SPAN_S / (known.calls * known.usual_s))))
        return min(known.run(known.calls) / known.calls for _ in range(count)) / known.usual_s


def _close(one: float, other: float) -> bool:
    return abs(one / other - 1) <= CLOSE
