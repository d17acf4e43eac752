"""The rows that cost models learn from where they are judged: drawn once, and the same ones for all of them.

A strategy chooses them as it does in `tune`; `random` draws them uniformly. The model that a strategy asks meanwhile is
named with it (`auto:gp`), so it is never the one that is judged: a model that chose its own rows would be compared with
others on other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features
from autosched.costmodel.learned.pretrained import Earlier, Pretrained
from autosched.costmodel.protocol import CostModel, Floats, Samples
from autosched.costmodel.registry import cost_models
from autosched.device.replay import ReplayDevice
from autosched.errors import UnknownNameError, UsageError
from autosched.search.evaluate.given_models import ModelFactory, made_model
from autosched.search.registry import needs_clock, strategies, strategy
from autosched.search.space.recorded import space_of
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import TrialHistory
from autosched.search.tuning.loop import BATCH
from autosched.search.tuning.study import Study
from autosched.store.recorded_space import RecordedSpace
from autosched.store.records import StudyRecord, Trial

TEACHER = "xgb"
"""The cost model of a strategy that is named without one."""


@dataclass(frozen=True)
class RecordedRows:
    """A recording, opened once for all models and seeds: its space, all rows of it, and of each its seconds (infinite
    where it failed), its features and the clock's seconds (1 where there is no clock)."""

    recording: RecordedSpace
    space: SearchSpace
    rows: Rows
    times: npt.NDArray[np.float64]
    features: Features
    analytic_s: Floats

    @staticmethod
    def of(recording: RecordedSpace) -> RecordedRows:
        """Raises UsageError where there is nothing to rank: all rows failed, or all took the same time."""
        space = space_of(recording, threads=1)
        rows = space.locate(np.arange(space.rows))
        times = times_of(recording, space, rows)
        timed = times[np.isfinite(times)]
        if not len(timed):
            raise UsageError(f"no row of {recording.name} came out right, so there is nothing to rank")
        if timed.min() == timed.max():
            which = f"all {len(timed)} rows" if len(timed) > 1 else "the only row"
            said = f"{which} of {recording.name} that came out right took {timed[0]:.3g} s"
            raise UsageError(f"{said}, so there is nothing to rank")
        return RecordedRows(recording, space, rows, times, space.features(rows), space.analytic(rows))

    @property
    def has_clock(self) -> bool:
        return all(p.terms for p in self.recording.plans if len(p))


@dataclass(frozen=True)
class Training:
    """What all models learn from: the rows that `chosen` took with `seed`, as `samples`; which rows these are (`seen`);
    `found`, the speed of the best of them as a share of the optimum (NaN where none came out right or was taken)."""

    chosen: str
    seed: int
    samples: Samples | None
    seen: npt.NDArray[np.bool_]
    found: float = float("nan")


def training(
    opened: RecordedRows, chosen: str = "random", count: int = 64, seed: int = 0, earlier: Earlier | None = None
) -> Training:
    """The first `count` rows that the strategy `chosen` asks for, as in `tune`; of `auto:gp` with that model, which
    knows `earlier` workloads. None where `count` is 0.

    Raises UnknownNameError for a strategy or model that nothing provides, UsageError for a strategy that needs a clock
    where there is none, or that ends before it has taken so many rows.
    """
    seen = np.zeros(len(opened.rows), np.bool_)
    if count < 1:
        return Training(chosen, seed, None, seen)
    name, teacher = split_name(chosen)
    if needs_clock(name) and not opened.has_clock:
        said = f"the strategy {name} ranks by the clock"
        raise UsageError(f"{said}, and {opened.recording.name} was recorded without one")
    trials = _trials(opened, name, count, seed, model_of(teacher, seed, earlier))
    if len(trials) < count:
        said = f"the strategy {chosen} took {len(trials)} rows of {opened.recording.name}, and {count} were asked for"
        raise UsageError(said, hint="ask for fewer, or name another strategy")
    memory = TrialHistory(opened.space)
    memory.observe(trials)
    taken = {t.key for t in trials}
    plans, ids = opened.rows.plan.tolist(), opened.rows.ids.tolist()
    keys = (f"{opened.space.plans[p].plan.name}#{r}" for p, r in zip(plans, ids, strict=True))
    seen = np.array([key in taken for key in keys], np.bool_)
    best_s = opened.times[seen].min()
    found = float(opened.times.min() / best_s) if np.isfinite(best_s) else float("nan")
    return Training(chosen, seed, memory.samples(), seen, found)


def split_name(chosen: str) -> tuple[str, str]:
    """`auto:gp` is the strategy `auto` with the model `gp`. Raises UnknownNameError."""
    name, _, model = chosen.partition(":")
    if name not in strategies(extras=True):
        raise UnknownNameError("strategy", name, strategies(extras=True))
    if model and model not in cost_models():
        raise UnknownNameError("cost model", model, cost_models())
    return name, model or TEACHER


def model_of(model: str | ModelFactory, seed: int, earlier: Earlier | None = None) -> CostModel:
    """A new model by name, or from a factory, on top of what `earlier` workloads taught. Raises UnknownNameError, and
    (later) PluginError for a factory's model that does not keep to its protocol."""
    own = made_model(model, seed, threads=1)
    return Pretrained(own, earlier, seed, threads=1) if earlier else own


def times_of(recording: RecordedSpace, space: SearchSpace, rows: Rows) -> npt.NDArray[np.float64]:
    """Recorded seconds of these rows; infinite where they failed."""
    found = np.full(len(rows), np.inf)
    for number, plan in enumerate(recording.plans):
        mine = np.flatnonzero(rows.plan == number)
        at = plan.space().places(rows.ids[mine])
        found[mine] = np.where(plan.ok[at], plan.time_s[at], np.inf)
    return found


def _trials(opened: RecordedRows, name: str, count: int, seed: int, model: CostModel) -> list[Trial]:
    """The first trials of a study that replays the recording, in batches as `tune` measures them."""
    recording = opened.recording
    device = ReplayDevice(recording=recording)
    record = StudyRecord(recording.name, {}, recording.program, recording.name, "", "replay", seed)
    study = Study(record, opened.space, strategy(name, opened.space, seed, model))
    while len(study.searched) < count:
        batch = study.ask(min(BATCH, count - len(study.searched)))
        if not batch:
            break
        for candidate in batch:
            study.tell(candidate, device.measure(device.build(candidate)))
    return study.searched
