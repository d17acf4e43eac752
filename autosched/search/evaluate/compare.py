"""Strategies side by side: every strategy with every seed over one space on one device, each candidate measured once.

What is compared is the tuning loop itself, on a device that remembers. A candidate that two strategies propose has one
time for both, so a difference between strategies is never the noise of a repeated measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from autosched.costmodel import CostModel
from autosched.device.checked import measurement_of
from autosched.device.protocol import Build, Device
from autosched.errors import (
    AutoschedError,
    NoScheduleError,
    PluginError,
    UnknownNameError,
    UsageError,
    WrongResultError,
)
from autosched.search.evaluate.given_models import ModelFactory, known_model, made_model
from autosched.search.events import Event, TrialDone
from autosched.search.protocol import Factory
from autosched.search.registry import strategies as known_strategies
from autosched.search.registry import strategy as make_strategy
from autosched.search.space.space import SearchSpace
from autosched.search.stopwatch import Stopwatch, TimedModel
from autosched.search.strategy.checked import CheckedStrategy
from autosched.search.tuning.loop import run
from autosched.search.tuning.study import Study
from autosched.store.records import Measurement, StudyRecord


class Row(NamedTuple):
    """One trial of one run. `time_s` is None where the candidate failed, `best_s` until one came out right.

    `elapsed_s` is the wall time that the run had taken by then, building and measuring its candidates included, also
    those that an earlier run of the comparison had paid for.
    """

    strategy: str
    seed: int
    trial: int
    plan: str
    row: int
    status: str
    time_s: float | None
    best_s: float | None
    elapsed_s: float


@dataclass(frozen=True)
class RunDone:
    """One run of a comparison ended; `done` of `total` runs have. `trials` is below the budget in a small space."""

    strategy: str
    seed: int
    trials: int
    best_s: float | None
    done: int
    total: int


TICK_DIGITS = 7
"""Decimal places of a second to which times and recorded costs are rounded."""
RunListener: TypeAlias = Callable[[RunDone], None]


@dataclass(frozen=True)
class Played:
    """All trials, in the order strategy, seed, trial; and why nothing came out right in the first run where nothing
    did."""

    rows: tuple[Row, ...]
    failure: AutoschedError | None

    def some(self) -> tuple[Row, ...]:
        """The rows, where any came out right; else raises the failure."""
        if self.failure is not None and all(row.status != "ok" for row in self.rows):
            raise self.failure
        return self.rows


@dataclass(frozen=True)
class Contestant:
    """A strategy under the name that the table shows, with the cost model it gets."""

    name: str
    factory: Factory
    model: str | ModelFactory


def contestants(strategies: Sequence[str | Factory], model: str | ModelFactory = "xgb") -> tuple[Contestant, ...]:
    """Strategies by name (`auto`), by name with a cost model of their own (`auto:analytic`), or as factories, which are
    called with (space, seed, model) and shown under their `__name__`. `model` is that of those that name none: a name,
    or a factory called with (seed, threads).

    Raises UsageError for none or two of one name, UnknownNameError for a name that nothing provides.
    """
    found = tuple(_contestant(s, model) for s in strategies)
    if not found:
        raise UsageError("no strategy to compare", hint=f"known: {', '.join(known_strategies())}")
    names = [c.name for c in found]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UsageError(f"the strategy {twice} is given twice")
    return found


def _contestant(given: str | Factory, model: str | ModelFactory) -> Contestant:
    if not isinstance(given, str):
        called = getattr(given, "__name__", type(given).__name__)
        return Contestant(called, _checked(called, given), model)
    name, _, own = given.partition(":")
    if name not in known_strategies(extras=True):
        raise UnknownNameError("strategy", name, known_strategies(extras=True))
    chosen = known_model(own or model)
    return Contestant(given, lambda space, seed, model: make_strategy(name, space, seed, model), chosen)


def _checked(name: str, factory: Factory) -> Factory:
    """Raises PluginError where it raises."""

    def made(space: SearchSpace, seed: int, model: CostModel | None) -> CheckedStrategy:
        try:
            return CheckedStrategy(name, factory(space, seed, model), space)
        except AutoschedError:
            raise
        except Exception as error:
            said = f"the strategy {name!r} is at fault: its constructor raised {type(error).__name__}: {error}"
            hint = "it takes a space, a seed and a cost model: docs/python.md#a-strategy"
            raise PluginError(said, hint=hint) from error

    return made


def seeds_of(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """`20` is seeds 0 to 19. Raises UsageError for none, a negative one, or one given twice."""
    found = tuple(range(seeds)) if isinstance(seeds, int) else tuple(int(s) for s in seeds)
    if not found:
        raise UsageError(f"{seeds} seeds leave nothing to compare" if isinstance(seeds, int) else "no seeds")
    if min(found) < 0 or len(set(found)) < len(found):
        raise UsageError(f"the seeds {', '.join(map(str, found))}: each from 0, and once")
    return found


def compare(
    space: SearchSpace,
    device: Device,
    record: StudyRecord,
    strategies: Sequence[Contestant],
    trials: int,
    seeds: Sequence[int],
    *,
    threads: int = 2,
    on_run: RunListener | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Played:
    """Run all strategies with all seeds, each `trials` trials.

    The space is shared, so enumeration and the clock's scores are paid once. A run whose candidates all fail has rows
    like any other; its failure is a NoScheduleError or WrongResultError that names the most frequent reason. Raises
    UsageError for no trials, MissingError from the device; Ctrl-C ends the comparison.
    """
    if trials < 1:
        raise UsageError(f"{trials} trials leave nothing to compare", hint="give 1 or more")
    remembering = MemoizingDevice(device, clock)
    rows: list[Row] = []
    failure: AutoschedError | None = None
    done, total = 0, len(strategies) * len(seeds)
    for chosen in strategies:
        for seed in seeds:
            watch = Stopwatch(remembering.clock)
            model = TimedModel(made_model(chosen.model, seed, threads), watch)
            strategy = chosen.factory(space, seed, model)
            study = Study(replace(record, seed=seed), space, strategy, watch=watch)
            mine, error = _rows(study, remembering, trials, chosen.name)
            failure = failure or error
            rows += mine
            done += 1
            if on_run is not None:
                on_run(RunDone(chosen.name, seed, len(mine), mine[-1].best_s if mine else None, done, total))
    return Played(tuple(rows), failure)


def _rows(study: Study, device: MemoizingDevice, trials: int, name: str) -> tuple[list[Row], AutoschedError | None]:
    """The rows of one run, and why nothing came out right where nothing did."""
    rows: list[Row] = []

    def note(event: Event) -> None:
        if isinstance(event, TrialDone):
            t = event.trial
            status, time_s = t.measurement.status, t.measurement.time_s
            elapsed_s = round(event.elapsed_s, TICK_DIGITS)  # sums of one order and another differ in last digits
            rows.append(Row(name, study.seed, t.number, t.plan, t.row, status, time_s, event.best_s, elapsed_s))

    try:
        result = run(study, device, trials, listener=note, final_rounds=0)
    except (NoScheduleError, WrongResultError) as error:
        return rows, error
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    return rows, None


class MemoizingDevice:
    """A device that measures a candidate once and then repeats its answer. `clock` goes on as if it had not."""

    def __init__(self, device: Device, clock: Callable[[], float]) -> None:
        self._device = device
        self._real_clock = clock
        self._saved_s = 0.0
        self._built: dict[str, tuple[Build, float]] = {}
        self._measured: dict[str, tuple[Measurement, float]] = {}

    def clock(self) -> float:
        """Seconds, those included that remembering has saved."""
        return self._real_clock() + self._saved_s

    def describe(self) -> dict[str, Any]:
        return self._device.describe()

    def build(self, candidate: Any) -> Build:
        found = self._built.get(candidate.key)
        if found is not None:
            self._saved_s += found[1]
            return replace(found[0], candidate=candidate)
        began = self._real_clock()
        build = self._device.build(candidate)
        self._built[candidate.key] = (build, self._real_clock() - began)
        return build

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        key = build.candidate.key
        found = self._measured.get(key)
        if found is None:
            began = self._real_clock()
            answer = measurement_of(self._device.measure(build, repeats), self._device)
            found = self._measured[key] = (answer, self._real_clock() - began)
            if key in self._built:
                # The payload may be a kernel, and thousands of them are too much to keep for an answer that is known.
                self._built[key] = (replace(build, payload=None), self._built[key][1])
        else:
            self._saved_s += found[1]
        return found[0]

    def close(self) -> None:
        self._device.close()
