"""The tuning loop: propose, build, measure, keep, learn; then the final round.

Nothing that a candidate does ends a run; what does end it is the budget, an empty space, Ctrl-C, or a store that cannot
keep trials. It emits events and never prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from autosched.device.protocol import Build, BuildsMany, Device
from autosched.errors import AutoschedError, MissingError, StoreError, UsageError
from autosched.search.events import (
    Event,
    FinalRound,
    Listener,
    MeasuredAgain,
    NewBest,
    Noisy,
    Stopped,
    StudyOpened,
    TrialDone,
    WorkerDied,
)
from autosched.search.final import (
    FINALISTS,
    ROUNDS,
    Interleaves,
    Verdict,
    finalists,
    pooled,
    race,
    raced_by_device,
    verdict,
)
from autosched.search.noise import Noise, doubtful, noise_of, settled
from autosched.search.stopping import Goals, Outlook
from autosched.search.study import Best, Study
from autosched.store.records import Measurement, Trial
from autosched.tiling.schedule import Candidate

BATCH = 8
"""Candidates between two fits of the model."""
_SHORT_ROUNDS = 3  # a round of a device that interleaves by itself is one sample, so more of them are affordable


@dataclass(frozen=True)
class Result:
    """How a run ended. `reason` is trials, timeout, exhausted, reached (the time that was asked for), gain (too little
    is left) or interrupted; `best` is None only when interrupted.

    `distinguishable` says whether the best really is faster than `runner_up` (None without one, or without a final
    round); `noise` what disturbed that round (None without one in this run); `gain` the share of the best time that one
    more measurement was last expected to save (None where nobody asked, or too little is known); `wrong` that a
    candidate of the study computed wrong numbers (exit status 4); `exit_code` is 0, 4 or 130.
    """

    best: Best | None
    runner_up: Trial | None
    distinguishable: bool | None
    done: int
    failed: dict[str, int]
    wrong: bool
    reason: str
    seconds: dict[str, float]
    noise: Noise | None = None
    gain: float | None = None

    @property
    def exit_code(self) -> int:
        if self.reason == "interrupted":
            return 130
        return 4 if self.wrong else 0


def run(
    study: Study,
    device: Device,
    trials: int,
    timeout_s: float | None = None,
    *,
    batch: int | None = None,
    listener: Listener | None = None,
    operations: float = 0.0,
    final_rounds: int = ROUNDS,
    goals: Goals | None = None,
    outlook: Outlook | None = None,
) -> Result:
    """Tune until the study has `trials` trials in all, or `timeout_s` seconds of the study's stopwatch are over.

    `batch` candidates are asked for at a time: as many as the strategy likes, where None. `operations` is what one call
    computes, for the speed in `NewBest`. `goals` may end the search sooner; a least gain among them is predicted by
    `outlook`, which must have observed the study's trials so far. Raises NoScheduleError when no candidate
    survived (naming the most frequent reason; WrongResultError if some were wrong), StoreError when a trial cannot be
    kept, MissingError from the device, UsageError for a budget of nothing.
    """
    if trials < 1:
        raise UsageError(f"trials is {trials}, and must be at least 1", hint="--trials is the total of the study")
    if timeout_s is not None and timeout_s <= 0:
        raise UsageError(f"timeout is {timeout_s} s, and must be above 0")
    made = _Run(study, device, trials, timeout_s, batch, listener, operations, final_rounds)
    made.goals, made.outlook = goals or Goals(), outlook
    return made.run()


class _Run:
    def __init__(
        self,
        study: Study,
        device: Device,
        trials: int,
        timeout_s: float | None,
        batch: int | None,
        listener: Listener | None,
        operations: float,
        final_rounds: int,
    ) -> None:
        self.study = study
        self.device = device
        self.trials = trials
        self.timeout_s = timeout_s
        self.batch = batch
        self.listener = listener
        self.operations = operations
        self.final_rounds = final_rounds
        self.watch = study.watch
        self.done = len(study.searched)
        self.best_s = study.best_s
        self.noise: Noise | None = None
        self.spent_s = 0.0  # on candidates that came out right, and how many they were
        self.fine = 0
        self.goals = Goals()
        self.outlook: Outlook | None = None
        self.gain: float | None = None
        self.kept: dict[str, Build] = {}  # of those that may enter the final round, by candidate

    def run(self) -> Result:
        study = self.study
        self._emit(StudyOpened(study.name, self.done, self.trials, self.best_s, not study.resumed, study.seed))
        decided: Verdict | None = None
        try:
            reason = self._search()
            decided = self._final()
        except KeyboardInterrupt:
            reason = "interrupted"
        except StoreError as error:
            raise self._unsaved(error) from error
        seconds = self.watch.seconds()
        self._emit(Stopped(reason, seconds))
        ranking = study.ranking
        if not ranking and reason != "interrupted":
            _ = study.best  # raises, with the reason
        return Result(
            best=study.best if ranking else None,
            runner_up=ranking[1] if len(ranking) > 1 else None,
            distinguishable=decided.distinguishable if decided else None,
            done=len(study.searched),  # Ctrl-C may come between keeping a trial and counting it
            failed=dict(study.failed),
            wrong=study.wrong,
            reason=reason,
            seconds=seconds,
            noise=self.noise,
            gain=self.gain,
        )

    def _search(self) -> str:
        while self.done < self.trials:
            if self._late():
                return "timeout"
            if self.goals.reached(self.best_s):
                return "reached"
            if self._too_little_left():
                return "gain"
            batch = self.batch or self.study.batch or BATCH
            candidates = self.study.ask(min(batch, self.trials - self.done))
            if not candidates:
                return "exhausted"
            builds = self._builds(candidates)
            for candidate in candidates:
                if self._late():
                    return "timeout"
                began = self.watch.elapsed_s
                build = next(builds)
                measurement = self._searched(build)
                if measurement.ok:
                    self.spent_s += self.watch.elapsed_s - began
                    self.fine += 1
                    self.kept[candidate.key] = build
                self._keep(candidate, measurement)
                if self.goals.reached(self.best_s):
                    return "reached"
            favourites = {t.key for t in finalists(self.study.favourites)}
            self.kept = {key: build for key, build in self.kept.items() if key in favourites}
        return "trials"

    def _too_little_left(self) -> bool:
        if self.outlook is None or self.goals.least_gain is None:
            return False
        with self.watch.phase("model"):
            self.gain = self.outlook.gain()
        return self.gain is not None and self.gain < self.goals.least_gain

    def _builds(self, candidates: Sequence[Candidate]) -> Iterator[Build]:
        """A build for each: all of them before the first is measured, where the device is quicker so and time is not
        short."""
        known = self.timeout_s is None or self.fine > 0
        if len(candidates) > 1 and isinstance(self.device, BuildsMany) and known and self._has_time(len(candidates)):
            together = self._built_together(self.device, candidates)
            if together:
                return iter(together)
        return (self._built(c) for c in candidates)

    def _built_together(self, device: BuildsMany, candidates: Sequence[Candidate]) -> list[Build]:
        began = self.watch.elapsed_s
        with self.watch.phase("build"):
            try:
                return device.build_all(candidates)
            except (MissingError, StoreError):
                raise
            except Exception:  # a mistake of ours in one of them: one by one, the others can be measured
                return []
            finally:
                self.spent_s += self.watch.elapsed_s - began

    def _searched(self, build: Build) -> Measurement:
        """A trial's measurement: the faster of two where the first is in doubt."""
        first = self._measured(build, "search")
        if not doubtful(first, self.best_s):
            return first
        again = self._measured(build, "search")
        self._emit(MeasuredAgain(first.time_s or 0.0, again.time_s))
        return first if again.ok and (again.time_s or 0.0) > (first.time_s or 0.0) else again

    def _late(self) -> bool:
        """Whether one more candidate and the final round, which may have a quarter of the time, no longer fit. The
        first candidate is always measured: a run that answers nothing is of no use."""
        return self.done > 0 and not self._has_time(1)

    def _has_time(self, more: int) -> bool:
        """Whether so many more candidates and the final round fit, as far as is known."""
        if self.timeout_s is None:
            return True
        reserve_s = min(self.timeout_s / 4, FINALISTS * self.final_rounds * self._typical_s)
        return self.watch.elapsed_s + more * self._typical_s + reserve_s <= self.timeout_s

    @property
    def _typical_s(self) -> float:
        return self.spent_s / self.fine if self.fine else 0.0

    def _keep(self, candidate: Candidate, measurement: Measurement) -> None:
        trial = self.study.tell(candidate, measurement)
        self.done += 1
        if self.outlook is not None:
            self.outlook.observe([trial])
        if measurement.status in ("crash", "timeout"):
            self._emit(WorkerDied(measurement.status, measurement.message))
        better = measurement.time_s is not None and measurement.ok
        better = better and (self.best_s is None or (measurement.time_s or 0.0) < self.best_s)
        if better:
            self.best_s = measurement.time_s
        self._emit(
            TrialDone(trial, self.best_s, self.done, self.trials, dict(self.study.failed), self.watch.elapsed_s)
        )
        if better and self.best_s:
            self._emit(NewBest(trial, self.operations / self.best_s / 1e9))

    def _final(self) -> Verdict | None:
        """Race the best few again, unless an earlier run did and nothing was measured since."""
        chosen = finalists(self.study.favourites)
        done = self.study.finals
        if done and {t.key for t in chosen} <= {t.key for t in done}:  # else it was interrupted half way
            return verdict(done)
        if not chosen or self.final_rounds < 1:
            return None
        self._emit(FinalRound(len(chosen)))
        candidates = [self.study.candidate(trial) for trial in chosen]
        builds = [self.kept.get(candidate.key) or self._built(candidate) for candidate in candidates]
        raced, noise = settled(lambda: self._raced(builds), self._say_noise, self._over)
        self.noise = replace(noise, drift=noise_of(raced, [t.measurement.time_s or 0.0 for t in chosen]).drift)
        for trial, candidate, measurement in zip(chosen, candidates, raced, strict=True):
            self.study.tell(candidate, measurement, number=trial.number)
        return verdict(self.study.finals)

    def _raced(self, builds: Sequence[Build]) -> list[Measurement]:
        if isinstance(self.device, Interleaves):
            with self.watch.phase("measure"):
                return raced_by_device(self.device, builds, _SHORT_ROUNDS * self.final_rounds)
        raced = race(builds, lambda build: self._measured(build, "final"), self.final_rounds, late=self._over)
        return [pooled(measurements) for measurements in raced]

    def _over(self) -> bool:
        return self.timeout_s is not None and self.watch.elapsed_s > self.timeout_s

    def _say_noise(self, noise: Noise, again: bool) -> None:
        self._emit(Noisy(noise.disturbed, noise.rounds, noise.slowdown, again))

    def _built(self, candidate: Candidate) -> Build:
        with self.watch.phase("build"):
            try:
                return self.device.build(candidate)
            except (MissingError, StoreError):
                raise
            except Exception as error:
                return Build(candidate, error=_said(error))

    def _measured(self, build: Build, repeats: str) -> Measurement:
        if build.error is not None:
            costs = {"build": build.seconds}
            return Measurement("build", message=build.error, kernel_sha=build.kernel_sha, costs_s=costs)
        with self.watch.phase("measure"):
            try:
                measurement = self.device.measure(build, repeats)
            except (MissingError, StoreError):
                raise
            except Exception as error:
                measurement = Measurement("crash", message=_said(error), kernel_sha=build.kernel_sha)
        self.watch.move("measure", "check", measurement.costs_s.get("check", 0.0))
        return measurement

    def _unsaved(self, error: StoreError) -> StoreError:
        unsaved = len(self.study.unsaved)
        safe = len(self.study.trials) - unsaved
        what = f"{safe} trials are safe in the store, {unsaved} could not be kept"
        return StoreError(f"{error.message} ({what})", hint=error.hint, location=error.location)

    def _emit(self, event: Event) -> None:
        if self.listener is not None:
            self.listener(event)


def _said(error: Exception) -> str:
    return error.message if isinstance(error, AutoschedError) else f"{type(error).__name__}: {error}"
