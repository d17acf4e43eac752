"""Strategies on a recorded space: what comparing is, with recorded answers, recorded costs and no device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autosched.device.protocol import Build, Device
from autosched.device.replay import ReplayDevice
from autosched.errors import UsageError
from autosched.search.evaluate.compare import TICK_DIGITS, Contestant, Played, RunListener, compare
from autosched.search.evaluate.landscape import Landscape
from autosched.search.registry import needs_clock, strategies
from autosched.search.space.recorded import space_of
from autosched.store.recorded_space import RecordedSpace
from autosched.store.records import Measurement, StudyRecord

SHORTEST, LONGEST = 64, 1000
"""Trials of a run where none are asked for: random search is soon done where few rows are far slower than the rest, and
takes very long in large spaces."""


def all_strategies(recording: RecordedSpace) -> list[str]:
    """Every strategy that can search it: without a clock, those that need one are left out."""
    return [s for s in strategies() if has_clock_terms(recording) or not needs_clock(s)]


def check(recording: RecordedSpace, contestants: Sequence[Contestant]) -> None:
    """Raise UsageError for a strategy that needs a clock where there is none."""
    if has_clock_terms(recording):
        return
    for name in (c.name for c in contestants):
        if name.partition(":")[0] in strategies() and needs_clock(name.partition(":")[0]):
            raise UsageError(
                f"the strategy {name} ranks by the clock, and {recording.name} was recorded without one",
                hint=f"these do without: {', '.join(all_strategies(recording))}",
            )


def has_clock_terms(recording: RecordedSpace) -> bool:
    return all(p.terms for p in recording.plans if len(p))


def budget_of(landscape: Landscape, trials: int | None) -> int:
    """The trials of each run: as asked for, else to where random search is nearly done. Never more than rows."""
    return min(landscape.rows, trials if trials is not None else min(LONGEST, max(SHORTEST, landscape.cutoff())))


def standing() -> float:
    """A clock that stands: what a strategy takes to think counts for nothing."""
    return 0.0


def simulate(
    recording: RecordedSpace,
    contestants: Sequence[Contestant],
    trials: int,
    seeds: Sequence[int],
    *,
    threads: int = 1,
    on_run: RunListener | None = None,
    clock: Callable[[], float] = standing,
) -> Played:
    """As `compare`, over the recording's rows. `elapsed_s` of a row is what the recorded tuner spent on its candidates:
    the same every time. With a `clock` that goes it has also what the strategy took to choose them. Raises UsageError
    as `check` does."""
    check(recording, contestants)
    device = Accounted(ReplayDevice(recording=recording), clock)
    record = StudyRecord(recording.name, {}, recording.program, recording.name, "", "replay", 0)
    space = space_of(recording, threads=threads)
    return compare(
        space, device, record, contestants, trials, seeds, threads=threads, on_run=on_run, clock=device.clock
    )


@dataclass
class Accounted:
    """A device whose clock goes on by what its answers cost when they were recorded."""

    device: Device
    real_clock: Callable[[], float]
    spent_s: float = 0.0

    def clock(self) -> float:
        return self.real_clock() + self.spent_s

    def describe(self) -> dict[str, Any]:
        return self.device.describe()

    def build(self, candidate: Any) -> Build:
        return self.device.build(candidate)

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        measurement = self.device.measure(build, repeats)
        self.spent_s += round(sum(measurement.costs_s.values()), TICK_DIGITS)
        return measurement

    def close(self) -> None:
        self.device.close()
