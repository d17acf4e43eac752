"""`Measuring`: the trials of a search, one after the other, in the calling thread or aside.

A device that has cores to spare measures one batch aside while the next one is proposed and built
(`device.protocol.Aside`). What is proposed then knows all batches but the one under way, however long that takes: the
same measurements lead to the same study.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from autosched.costmodel.analytic.limits import limit
from autosched.device.checked import build_of, measurement_of
from autosched.device.protocol import Aside, Build, Device
from autosched.errors import AutoschedError, DataError, MissingError, StoreError
from autosched.search.tuning.noise import MEASURED, doubtful
from autosched.store.records import Measurement
from autosched.tiling.candidate import Candidate

NOT_THE_CANDIDATE = (DataError, MissingError, StoreError)
"""Errors that end the run: every other candidate would meet them, too."""


@dataclass(frozen=True)
class MeasuredBuild:
    """What counts of a trial, and the measurements made of its build, which took `took_s` seconds together."""

    build: Build
    counts: Measurement
    made: tuple[Measurement, ...]
    took_s: float


@dataclass(frozen=True)
class UnderWay:
    """A candidate that is measured aside: `answer` waits for its measurement, `there` says whether that is there."""

    candidate: Candidate
    answer: Callable[[], MeasuredBuild]
    there: Callable[[], bool]


class Measuring:
    """Measures builds in the order in which they are begun. `best_s` is the fastest time so far, None for none;
    `clock` gives seconds."""

    def __init__(self, device: Device, best_s: float | None, clock: Callable[[], float]) -> None:
        self.device, self.best_s, self.clock = device, best_s, clock

    @property
    def aside(self) -> bool:
        """Whether the device can measure while others work."""
        return isinstance(self.device, Aside) and self.device.aside

    def begin(self, candidate: Candidate, draft: Callable[[], Build]) -> UnderWay:
        """Build it from its draft and measure it, aside, behind what was begun before."""
        assert isinstance(self.device, Aside)
        future = self.device.begin(lambda: self.searched(build_of(_built(candidate, draft), candidate, self.device)))
        return UnderWay(candidate, future.result, lambda: future.done() and future.exception() is None)

    def give_up(self) -> None:
        """Let go of what was begun: nobody asks for it any more."""
        if isinstance(self.device, Aside):
            self.device.give_up()

    def searched(self, build: Build) -> MeasuredBuild:
        """A trial of the search: the fastest of a few where the first is in doubt."""
        began = self.clock()
        counts = self.measured(build, "search")
        made = [counts]
        while len(made) < MEASURED and doubtful(counts, self.best_s):
            made.append(again := self.measured(build, "search"))
            counts = again if not again.ok or (again.time_s or 0.0) <= (counts.time_s or 0.0) else counts
        if counts.ok and counts.time_s is not None:
            self.best_s = min(counts.time_s, self.best_s or counts.time_s)
        return MeasuredBuild(build, counts, tuple(made), self.clock() - began)

    def measured(self, build: Build, repeats: str) -> Measurement:
        """One measurement; whatever a candidate does is its outcome. Raises `NOT_THE_CANDIDATE`."""
        if build.error is not None:
            costs = {"build": build.seconds}
            return Measurement("build", message=build.error, kernel_sha=build.kernel_sha, costs_s=costs)
        try:
            return refuse_below_bound(measurement_of(self.device.measure(build, repeats), self.device), build.candidate)
        except NOT_THE_CANDIDATE:
            raise
        except Exception as error:
            return Measurement("crash", message=said(error), kernel_sha=build.kernel_sha)


def _built(candidate: Candidate, draft: Callable[[], Build]) -> Build:
    try:
        return draft()
    except NOT_THE_CANDIDATE:
        raise
    except Exception as error:
        return Build(candidate, error=said(error))


def said(error: Exception) -> str:
    """What an error is recorded as."""
    return error.message if isinstance(error, AutoschedError) else f"{type(error).__name__}: {error}"


ROUNDING = 1e-6
"""Share by which sums of floats may differ."""


def refuse_below_bound(measured: Measurement, candidate: Candidate) -> Measurement:
    """The measurement; `failed` where the model's own time (noise aside) is below the row's lower bound."""
    total = measured.extra.get("model_s", {}).get("total") if isinstance(measured.extra, dict) else None
    if not measured.ok or total is None:
        return measured
    plan = candidate.plan
    least = float(limit(plan, plan.space.values([candidate.row]), formulas=False)[0])
    if total >= least * (1 - ROUNDING):
        return measured
    said = f"simulated in {total * 1e6:.4g} µs, but by the target's figures its units are busy for {least * 1e6:.4g} µs"
    return replace(measured, status="failed", time_s=None, samples_s=(), spread=None, message=f"{said}: please report")
