"""`Study`: ask for candidates, tell what was measured; every trial is stored before anything else happens with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from autosched.costmodel.learned.pretrained import Earlier, Pretrained
from autosched.costmodel.registry import cost_model
from autosched.device.checked import measurement_of
from autosched.errors import NoScheduleError, StoreError, WrongResultError
from autosched.search.defer_signals import defer_signals
from autosched.search.protocol import Strategy
from autosched.search.registry import strategy
from autosched.search.space.rows import in_order
from autosched.search.space.space import SearchSpace
from autosched.search.stopwatch import Stopwatch, TimedModel
from autosched.search.tuning.user_schedules import UserSchedulesFirst
from autosched.store.protocol import Store
from autosched.store.ranking import finals, ranked
from autosched.store.records import Measurement, StudyRecord, Trial
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.schedule import Schedule

Builder = Callable[[Candidate], Any]
"""Turns a candidate into something callable; the device layer has one."""


@dataclass(frozen=True, repr=False)
class Best:
    """The best trial of a study, and the candidate that it measured."""

    trial: Trial
    candidate: Candidate
    _builder: Builder | None = None

    def __repr__(self) -> str:
        plan, at = self.candidate.plan, f"trial {self.trial.number}: {self.time_s:.3g} s"
        return f"<Best {plan.program.signature} for {plan.target.name}, {at}\n {plan.name}  {self.schedule}>"

    @property
    def time_s(self) -> float:
        """Median seconds of one call."""
        return self.trial.measurement.time_s or float("nan")

    @property
    def schedule(self) -> Schedule:
        return self.candidate.schedule

    def build(self) -> Any:
        """The kernel as a callable (numpy in, numpy out). Raises NoScheduleError where the study cannot build."""
        if self._builder is None:
            raise NoScheduleError("this study was opened without a device that can build its kernels")
        return self._builder(self.candidate)


class Study:
    """All trials of one program on one device. Make one with `open_study`.

    `record` is the study as stored; `trials` holds search and final rounds in order, `searched` those of the search,
    whose number is what `--trials` limits, and `failed` counts the failed ones of these by kind. `unsaved` are trials
    that a store refused, which are in `trials` all the same.
    """

    def __init__(
        self,
        record: StudyRecord,
        space: SearchSpace,
        strategy: Strategy,
        store: Store | None = None,
        *,
        trials: list[Trial] | None = None,
        builder: Builder | None = None,
        watch: Stopwatch | None = None,
    ) -> None:
        self.record = record
        self.space = space
        self.trials: list[Trial] = []
        self.searched: list[Trial] = []
        self.failed: dict[str, int] = {}
        self.unsaved: list[Trial] = []
        self.brought: frozenset[str] = frozenset()  # by the user
        self.watch = watch or Stopwatch(time.monotonic)
        for trial in trials or ():
            self._note(trial)
        self.resumed = len(self.trials)
        self._strategy = strategy
        self._store = store
        self._builder = builder
        strategy.observe(self.searched)

    def __repr__(self) -> str:
        best_s = self.best_s
        best = "none" if best_s is None else f"{best_s:.3g} s"
        return f"<Study {self.name}, trials: {len(self.searched)}, best: {best}>"

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def seed(self) -> int:
        return self.record.seed

    @property
    def batch(self) -> int | None:
        """How many candidates the strategy proposes between two observations (its attribute `batch`); None: any
        number."""
        wanted: int | None = getattr(self._strategy, "batch", None)
        return wanted

    @property
    def ahead(self) -> bool:
        """Whether the strategy can propose a batch before it observes the last one (its attribute `ahead`); those that
        learn from one trial at a time, or wait for a generation, cannot."""
        return bool(getattr(self._strategy, "ahead", False))

    @property
    def finals(self) -> list[Trial]:
        """See `store.ranking.finals`."""
        return finals(self.trials)

    @property
    def failures(self) -> dict[str, list[Trial]]:
        """Failed trials by kind, final rounds too."""
        found: dict[str, list[Trial]] = {}
        for trial in self.trials:
            if not trial.measurement.ok:
                found.setdefault(trial.measurement.status, []).append(trial)
        return found

    @property
    def wrong(self) -> bool:
        """Whether any candidate computed wrong numbers: the run then ends with exit status 4."""
        return "wrong" in self.failures

    @property
    def ranking(self) -> list[Trial]:
        """See `store.ranking.ranked`."""
        return ranked(self.trials)

    @property
    def favourites(self) -> list[Trial]:
        """Trials of the search whose candidates always came out right, fastest first: who may enter a final round."""
        return sorted(self._fine(self.searched), key=lambda t: (t.measurement.cost, t.number))

    def _fine(self, trials: list[Trial]) -> list[Trial]:
        bad = {trial.key for failed in self.failures.values() for trial in failed}
        return [t for t in trials if t.key not in bad and t.measurement.time_s is not None]

    @property
    def best(self) -> Best:
        """The fastest verified candidate. Without any: raises NoScheduleError, naming the most frequent reason, or
        WrongResultError where wrong numbers are among the reasons."""
        ranking = self.ranking
        if not ranking:
            raise (WrongResultError if self.wrong else NoScheduleError)(self._why_none(), hint=self._whose_fault())
        return Best(ranking[0], self.candidate(ranking[0]), self._builder)

    @property
    def best_s(self) -> float | None:
        """Seconds of the best verified candidate, or None."""
        ranking = self.ranking
        return ranking[0].measurement.time_s if ranking else None

    @property
    def best_cost(self) -> float | None:
        """What the study minimises, of the best verified candidate, or None."""
        ranking = self.ranking
        return ranking[0].measurement.cost if ranking else None

    def candidate(self, trial: Trial) -> Candidate:
        """The candidate that a trial measured. Raises StoreError where its plan is no longer among the study's."""
        number = self.space.number.get(trial.plan)
        if number is None:
            raise StoreError(
                f"trial {trial.number} of {self.name!r} used the plan {trial.plan!r}, which this study does not have",
                hint="start over with --fresh",
            )
        return Candidate(self.space.plans[number].plan, trial.row, trial.analytic_s, trial.predicted_s)

    def first(self, candidates: Sequence[Candidate]) -> None:
        """Have these measured before the strategy is asked; those that have been are left alone."""
        measured = {trial.key for trial in self.searched}
        self.brought = frozenset(c.key for c in candidates)
        self._strategy = UserSchedulesFirst((c for c in candidates if c.key not in measured), self._strategy)

    def ask(self, n: int = 1) -> list[Candidate]:
        """Up to `n` candidates to measure next, never one twice; fewer when the space has no more."""
        with self.watch.phase("search"):
            return self._strategy.propose(n)

    @property
    def has_fallback(self) -> bool:
        """Whether there are plans without tile loops beside some with them."""
        return 0 < len(self._plain) < len(self.space.plans)

    @property
    def _plain(self) -> list[int]:
        return [n for n, entry in enumerate(self.space.plans) if not entry.plan.in_tile_loops]

    def fallback(self) -> list[Candidate]:
        """The candidate of a plan without tile loops that the clock likes best of those not measured; none where there
        is none."""
        with self.watch.phase("search"):
            measured = {trial.key for trial in self.searched}
            known = (n for n in self._plain if self.space.has_legal(n))
            best = [self.space.best(len(measured) + 1, n) for n in known]
            rows, _ = in_order([r for r, _ in best], [s for _, s in best], 2 * len(measured) + 1)
            found = (c for c in self.space.candidates(rows) if c.key not in measured)
            return list(islice(found, 1))

    def tell(self, candidate: Candidate, measurement: Measurement, number: int | None = None) -> Trial:
        """Store a measurement as a trial and let the strategy learn from it.

        `number` marks a measurement of the final round with the number of the trial that it repeats. Raises StoreError
        where the store refuses; the trial then is in `trials` and in `unsaved`, and the study goes on.
        """
        measurement = measurement_of(measurement, self.record.device)
        trial = Trial(
            number=len(self.searched) + 1 if number is None else number,
            plan=candidate.plan.name,
            row=candidate.row,
            schedule=candidate.schedule.named,
            measurement=measurement,
            analytic_s=candidate.analytic_s,
            predicted_s=candidate.predicted_s,
            round="search" if number is None else "final",
        )
        try:
            with defer_signals():  # a trial of which the store knows nothing would leave a gap in its numbers
                self._keep(trial)
        finally:
            if number is None:
                with self.watch.phase("search"):
                    self._strategy.observe([trial])
        return trial

    def _keep(self, trial: Trial) -> None:
        try:
            if self._store is not None:
                self._store.append(self.name, trial)
        except StoreError:
            self.unsaved.append(trial)
            raise
        finally:
            self._note(trial)

    def _note(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.round == "search":
            self.searched.append(trial)
            if not trial.measurement.ok:
                kind = trial.measurement.status
                self.failed[kind] = self.failed.get(kind, 0) + 1

    def _whose_fault(self) -> str | None:
        """What to do where kernels crashed."""
        crashed = self.failures.get("crash", ())
        if not crashed:
            return None
        shown = f"`autosched show {self.name} --trial {crashed[0].number} --as loops` prints the kernel"
        return f"a crash is a fault of autosched or of an instruction's description, not of the program: {shown}"

    def _why_none(self) -> str:
        if not self.trials:
            return f"study {self.name!r} has no trials yet"
        if not self.failures:
            return f"no trial of study {self.name!r} has a time"
        kind, trials = max(self.failures.items(), key=lambda item: len(item[1]))
        first = trials[0].measurement.message.strip().splitlines()
        said = f": {first[0]}" if first else ""
        text = f"none of {len(self.searched)} candidates survived; {len(trials)} failed with {kind!r}"
        return f"{text}, the first as trial {trials[0].number}{said}"


def open_study(
    record: StudyRecord,
    space: SearchSpace,
    store: Store | None = None,
    *,
    strategy_name: str = "auto",
    model_name: str = "xgb",
    fresh: bool = False,
    threads: int = 2,
    builder: Builder | None = None,
    watch: Stopwatch | None = None,
    earlier: Earlier | None = None,
) -> Study:
    """Create a study or continue the stored one: its trials come back, and it keeps its first seed.

    With `earlier` studies the model begins with what they taught. Raises UnknownNameError for a strategy or model,
    StoreError for a store that cannot be used or a study of that name
    with another key.
    """
    watch = watch or Stopwatch(time.monotonic)
    stored = store.open(record, fresh=fresh) if store else record
    trials = store.trials(record.name) if store else []
    with watch.phase("model"):
        own = cost_model(model_name, stored.seed, threads)
        model = TimedModel(Pretrained(own, earlier, stored.seed, threads) if earlier else own, watch)
    with watch.phase("search"):
        chosen = strategy(strategy_name, space, stored.seed, model)
        return Study(stored, space, chosen, store, trials=trials, builder=builder, watch=watch)
