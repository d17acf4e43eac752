"""The tuning loop: propose, build, measure, keep, learn; then the final round.

Nothing that a candidate does ends a run; what does end it is the budget, an empty space, Ctrl-C, or a store that cannot
keep trials. It emits events and never prints.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from autosched.device.protocol import Build, Device
from autosched.errors import StoreError, UsageError
from autosched.search.events import (
    Event,
    FinalFailed,
    FinalRound,
    Listener,
    MeasuredAgain,
    NewBest,
    NoFinal,
    Noisy,
    PlanGivenUp,
    Proposed,
    RaceLost,
    Stopped,
    StudyOpened,
    TrialDone,
    WorkerDied,
)
from autosched.search.stopping import Goals, Outlook
from autosched.search.strategy.failing import GIVE_UP, failing
from autosched.search.tuning.building import Building
from autosched.search.tuning.deadline import MEASURING, Deadline, OutOfTime, briefly
from autosched.search.tuning.final import (
    FINALISTS,
    ROUNDS,
    Interleaves,
    Verdict,
    finalists,
    passed_over,
    pooled,
    race,
    raced_by_device,
    rounds_of,
    verdict,
    waits_for_check,
)
from autosched.search.tuning.measuring import MeasuredBuild, Measuring, UnderWay
from autosched.search.tuning.noise import Noise, noise_of, settled
from autosched.search.tuning.study import Best, Study
from autosched.store.records import Measurement, Trial
from autosched.tiling.candidate import Candidate

BATCH = 8
"""Candidates between two fits of the model."""


@dataclass(frozen=True)
class Result:
    """How a run ended. `reason` is trials, timeout, exhausted, reached (the `--until` goal), gain (less than
    `--least-gain` is expected) or interrupted; `best` is None only when interrupted.

    `distinguishable` says whether the best really is faster than `runner_up` (None without one, or without a final
    round); `noise` what disturbed that round (None without one in this run); `gain` the share of the best time that one
    more measurement was last expected to save (None without a least gain, or where too little is known); `wrong` that a
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
    meanwhile: Iterable[None] = (),
    deadline: Deadline | None = None,
) -> Result:
    """Tune until the study has `trials` trials in all, or until `timeout_s` seconds of its stopwatch are over, the
    final round included. At the `deadline`, if the caller has entered one, everything ends; its alarm is off
    afterwards.

    `batch`: candidates of one proposal (None: as many as the strategy likes). `operations`: those of one call, for the
    speed in `NewBest`. `goals` may end the search sooner; `outlook` predicts the gain for a least gain among them, and
    must have observed the study's trials so far. `meanwhile`: other work, done piece by piece while the loop waits for
    a measurement, or after each; the rest is done at the end. Raises NoScheduleError when no candidate survived (naming
    the most frequent reason, or what the deadline cut off; WrongResultError if some were wrong), StoreError when a
    trial cannot be kept, MissingError from the device, UsageError for a budget of nothing.
    """
    if trials < 1:
        raise UsageError(f"trials is {trials}, and must be at least 1", hint="--trials is the total of the study")
    if timeout_s is not None and timeout_s <= 0:
        raise UsageError(f"timeout is {timeout_s} s, and must be above 0")
    made = _Run(study, device, trials, timeout_s, batch, listener, operations, final_rounds)
    made.goals, made.outlook, made.meanwhile = goals or Goals(), outlook, iter(meanwhile)
    made.deadline = deadline or Deadline(None)
    made.deadline.so_far = partial(made.result, "timeout")
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
        self.best_s, self.best_cost = study.best_s, study.best_cost
        self.noise: Noise | None = None
        self.spent_s = 0.0  # on candidates that came out right, and how many they were
        self.fine = 0
        self.goals = Goals()
        self.outlook: Outlook | None = None
        self.meanwhile: Iterator[None] = iter(())
        self.deadline = Deadline(None)
        self.gain: float | None = None
        self.unchecked = False  # whether results wait for the final round to be checked
        self.since_s = 0.0  # when the last trial was kept
        self.building = Building(device, self.watch)
        self.measuring = Measuring(device, self.best_s, study.watch.clock)
        self.under_way: deque[UnderWay] = deque()  # measured aside, oldest first
        self.raced = ""  # whether a final round is `under way`, or `lost`
        self.kept: dict[str, Build] = {}  # of those that may enter the final round, by candidate
        self.asked_with: dict[str, frozenset[str]] = {}  # the plans that were given up when a candidate was asked for

    def run(self) -> Result:
        study = self.study
        self._emit(StudyOpened(study.name, self.done, self.trials, self.best_s, not study.resumed, study.seed))
        decided: Verdict | None = None
        try:
            self.deadline.again()
            reason = self._search()
            decided = self._final()
            reason = "timeout" if self.deadline.over else reason
            self.deadline.met()
        except KeyboardInterrupt:
            self.deadline.met()
            reason = "interrupted"
        except OutOfTime:
            self.deadline.met()
            reason = "timeout"
        except StoreError as error:
            raise self._unsaved(error) from error
        seconds = self.watch.seconds()
        with briefly(when=self.deadline.over):
            if reason == "timeout" and decided is None:
                self._say_no_final()
            self._emit(Stopped(reason, seconds))
        if reason == "timeout" and not study.trials and self.deadline.over:
            raise self.deadline.failed()
        if not study.ranking and reason != "interrupted":
            _ = study.best  # raises, with the reason
        return self.result(reason, decided)

    def result(self, reason: str, decided: Verdict | None = None) -> Result:
        """What is known so far."""
        study = self.study
        ranking = study.ranking
        return Result(
            best=study.best if ranking else None,
            runner_up=ranking[1] if len(ranking) > 1 else None,
            distinguishable=decided.distinguishable if decided else None,
            done=len(study.searched),  # Ctrl-C may come between keeping a trial and counting it
            failed=dict(study.failed),
            wrong=study.wrong,
            reason=reason,
            seconds=self.watch.seconds(),
            noise=self.noise,
            gain=self.gain,
        )

    def _search(self) -> str:
        self.since_s = self.watch.elapsed_s
        try:
            reason = self._ended()
            while not reason:
                reason = self._round() or self._ended()
                favourites = {t.key for t in finalists(self.study.favourites)}
                self.kept = {key: build for key, build in self.kept.items() if key in favourites}
            if reason == "timeout":
                self._keep_there()
            while reason != "timeout" and self._piece():
                pass
            return reason
        except KeyboardInterrupt:
            self._keep_there()
            raise
        except OutOfTime:
            self.deadline.met()
            with briefly():
                self._keep_there()
            raise
        finally:
            if self.under_way:
                with briefly(when=self.deadline.over):
                    self.measuring.give_up()
                self.under_way.clear()

    def _piece(self) -> bool:
        """Do a piece of what else there is to do; whether there was one."""
        with self.watch.phase("search"):
            return next(self.meanwhile, True) is None

    def _round(self) -> str:
        """Ask, build and measure; why the search ends with that, if so. What is measured aside is kept a round later,
        when that one has asked: a strategy knows the same trials then, however long they took."""
        before = len(self.under_way)
        candidates = self._asked(self.trials - self.done - before, before)
        if not candidates and not before:
            return "exhausted"
        if candidates:
            self._emit(Proposed(len(candidates)))
        self.deadline.doing = MEASURING
        if self._aside(before + len(candidates)):
            drafts = [self.building.draft(candidate) for candidate in candidates]
            self.under_way += map(self.measuring.begin, candidates, drafts)
            for draft in reversed(drafts):  # the other side takes them from the front
                if before and self.under_way[before - 1].there():
                    break  # it has, and more of it should be asked for
                self.building.ahead(draft)
            return self._keep_begun(before if self.study.ahead else len(self.under_way))
        return self._keep_begun(before) or self._keep_here(candidates)

    def _asked(self, left: int, before: int) -> list[Candidate]:
        """Candidates for a round, of `left` that may be begun while so many `before` are measured. While nothing came
        out right, the last is kept for a plan without tile loops."""
        if left and self.trials > 1 and self.best_cost is None and self.study.has_fallback:
            if left == 1 and not before and (found := self.study.fallback()):
                return found
            left -= left > 1 or before > 0
        candidates = self.study.ask(min(self.batch or self.study.batch or BATCH, left)) if left else []
        given_up = self._given_up()
        self.asked_with |= {c.key: given_up for c in candidates}
        return candidates

    def _given_up(self) -> frozenset[str]:
        """The plans that only fail."""
        return failing((t.plan, t.measurement.ok) for t in self.study.searched)

    def _passed_over(self, candidate: Candidate) -> bool:
        """Whether a candidate's plan was given up since it was asked for, and others have rows: a trial of them says
        more."""
        name, found = candidate.plan.name, self._given_up()
        if candidate.key in self.study.brought or name not in found - self.asked_with.get(candidate.key, found):
            return False
        space = self.study.space
        return any(plan not in found and space.has_legal(n) for plan, n in space.number.items())

    def _ended(self) -> str:
        """Why nothing more is asked for, if so."""
        if self.done >= self.trials:
            return "trials"
        if self._late():
            return "timeout"
        if self.goals.reached(self.best_s):
            return "reached"
        return "gain" if self._too_little_left() else ""

    def _keep_begun(self, count: int) -> str:
        """Keep the first of what is measured aside, in order; why the search ends with that, if so."""
        for _ in range(count):
            if self._late():
                return "timeout"
            self._keep_first()
            if self.goals.reached(self.best_s):
                return "reached"
        return ""

    def _keep_here(self, candidates: Sequence[Candidate]) -> str:
        """Build and measure candidates one after the other; why the search ends with that, if so."""
        builds = self.building.all(candidates, self._unhurried(len(candidates)))
        for candidate in candidates:
            if self._late():
                return "timeout"
            build = next(builds)
            if self._passed_over(candidate):
                continue
            self._take(candidate, partial(self.measuring.searched, build))
            if self.goals.reached(self.best_s):
                return "reached"
            if not self._late():
                self._piece()
        return ""

    def _take(self, candidate: Candidate, answer: Callable[[], MeasuredBuild]) -> None:
        """Wait for a trial's measurement and keep it."""
        with self.watch.phase("measure"):
            began = self.watch.elapsed_s
            found = answer()
            waited_s = self.watch.elapsed_s - began
        share = min(1.0, waited_s / found.took_s) if found.took_s > 0 else 1.0
        self.watch.move("measure", "check", share * sum(m.costs_s.get("check", 0.0) for m in found.made))
        if len(found.made) > 1:
            self._emit(MeasuredAgain(found.made[0].time_s or 0.0, found.counts.time_s))
        now = self.watch.elapsed_s
        if found.counts.ok:
            self.unchecked = waits_for_check(found.counts)
            self.spent_s += now - self.since_s
            self.fine += 1
            self.kept[candidate.key] = found.build
        self.since_s = now
        if found.counts.status in ("ok", "wrong", "crash") or not self._passed_over(candidate):
            self._keep(candidate, found.counts)

    def _keep_first(self) -> None:
        """Keep what has been measured aside for longest."""
        begun = self.under_way[0]
        while not begun.there() and self._piece():
            pass

        def answer() -> MeasuredBuild:
            found = begun.answer()  # Ctrl-C comes while this waits, and the trial is not lost then
            self.under_way.popleft()
            return found

        self._take(begun.candidate, answer)

    def _keep_there(self) -> None:
        """Keep what is there already of what is measured aside."""
        while self.under_way and self.under_way[0].there():
            self._keep_first()

    def _too_little_left(self) -> bool:
        if self.outlook is None or self.goals.least_gain is None:
            return False
        with self.watch.phase("model"):
            self.gain = self.outlook.gain()
        return self.gain is not None and self.gain < self.goals.least_gain

    def _unhurried(self, count: int) -> bool:
        """Whether so many candidates may be begun together, as far as is known."""
        return self.timeout_s is None or (self.fine > 0 and self._has_time(count))

    def _aside(self, count: int) -> bool:
        """Whether candidates are measured aside, `count` being those under way then: what is begun there can be let go,
        so that the first need not be waited for."""
        return self.measuring.aside and self._has_time(count)

    def _late(self) -> bool:
        """Whether one more candidate and the final round, which may have a quarter of the time, no longer fit. The
        first candidate is measured as long as the deadline lets it: a run that answers nothing is of no use."""
        return self.deadline.over or (self.done > 0 and not self._has_time(1))

    def _has_time(self, more: int) -> bool:
        """Whether so many more candidates and the final round fit, as far as is known."""
        if self.timeout_s is None:
            return True
        reserve_s = min(self.timeout_s / 4, FINALISTS * self.final_rounds * self._typical_s)
        if self.unchecked:  # and the final round takes longer than what was measured
            reserve_s = self.timeout_s / 4
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
        cost = measurement.cost if measurement.ok else None
        better = cost is not None and (self.best_cost is None or cost < self.best_cost)
        if better:
            self.best_s, self.best_cost = measurement.time_s, cost
        self._emit(TrialDone(trial, self.best_s, self.done, self.trials, dict(self.study.failed), self.watch.elapsed_s))
        if not measurement.ok:
            self._say_given_up(trial)
        if better and self.best_s:
            self._emit(NewBest(trial, self.operations / self.best_s / 1e9))

    def _say_given_up(self, trial: Trial) -> None:
        """Where this failure is the one by which its plan is given up, and there are others."""
        of_plan = [(t.plan, t.measurement.ok) for t in self.study.searched if t.plan == trial.plan]
        if len(of_plan) == GIVE_UP and len(self.study.space.plans) > 1 and failing(of_plan):
            said = trial.measurement.message.strip().splitlines()
            self._emit(PlanGivenUp(trial.plan, len(of_plan), said[0] if said else trial.measurement.status))

    def _final(self) -> Verdict | None:
        """Race the best few again, unless an earlier run did and nothing was measured since."""
        chosen = finalists(self.study.favourites)
        done = self.study.finals
        if done and {t.key for t in chosen} <= {t.key for t in done}:  # else it was interrupted half way
            return verdict(done)
        if not chosen or self.final_rounds < 1 or self.deadline.over:
            return None
        if self.timeout_s is not None and self._typical_s > 0:
            chosen = chosen[: max(1, int((self.timeout_s - self.watch.elapsed_s) / self._typical_s))]
        raced, noise = self._race_of(chosen)
        more = [] if self._over() else passed_over(self.study.favourites, chosen, raced)
        if more:
            chosen += more
            raced, noise = self._race_of(chosen, len(more))
        self.noise = noise
        late = () if any(m.ok for m in raced) else [m for m in raced if m.status == "timeout"]
        for trial, measurement in zip(chosen, raced, strict=True):
            if not late or measurement.status != "timeout":
                self.study.tell(self.study.candidate(trial), measurement, number=trial.number)
        if late:  # they came out right in the search, and nothing says that they are not
            self.raced = "lost"
            self._emit(RaceLost(late[0].message))
        failed = Counter(m.status for m in raced if not m.ok and not late)
        if failed:
            self._emit(FinalFailed(dict(failed), len(raced)))
        return None if late else verdict(self.study.finals)

    def _say_no_final(self) -> None:
        """That nothing was measured again for want of time, where something would have been."""
        if self.raced:
            if self.raced == "under way":
                self._emit(RaceLost("the time is over"))
        elif self.final_rounds > 0 and finalists(self.study.favourites):
            self._emit(NoFinal())

    def _race_of(self, chosen: Sequence[Trial], more: int = 0) -> tuple[list[Measurement], Noise]:
        self._emit(FinalRound(len(chosen), more))
        self.raced = "under way"
        candidates = [self.study.candidate(trial) for trial in chosen]
        builds = [self.kept.get(candidate.key) or self.building.one(candidate) for candidate in candidates]
        times_s = [t.measurement.time_s or 0.0 for t in chosen]
        raced, noise = settled(lambda: self._raced(builds, times_s), self._say_noise, self._over)
        return raced, replace(noise, drift=noise_of(raced, times_s).drift)

    def _raced(self, builds: Sequence[Build], times_s: Sequence[float]) -> list[Measurement]:
        if isinstance(self.device, Interleaves):
            with self.watch.phase("measure"):
                return raced_by_device(self.device, builds, rounds_of(times_s, self.final_rounds))
        raced = race(builds, lambda build: self._measured(build, "final"), self.final_rounds, late=self._over)
        return [pooled(measurements) for measurements in raced]

    def _over(self) -> bool:
        return self.deadline.over or (self.timeout_s is not None and self.watch.elapsed_s > self.timeout_s)

    def _say_noise(self, noise: Noise, again: bool) -> None:
        self._emit(Noisy(noise.disturbed, noise.rounds, noise.slowdown, again))

    def _measured(self, build: Build, repeats: str) -> Measurement:
        with self.watch.phase("measure"):
            measurement = self.measuring.measured(build, repeats)
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
