"""How good a cost model is on a recorded space: what it says of all rows after a few of them were measured.

The measured rows are those that a strategy chooses (`auto`: as `tune` does), so the model is judged on what it would
have known. It may know other workloads from before (`earlier`), and none of the rows of this one. Everything is a
function of the recordings and the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from autosched.costmodel.accuracy.metrics import best_at, coverage, kendall, pairwise_accuracy, recall_at, spearman
from autosched.costmodel.learned.pretrained import Earlier, Pretrained
from autosched.costmodel.protocol import CostModel, Prediction
from autosched.costmodel.registry import cost_model
from autosched.device.replay import ReplayDevice
from autosched.search.registry import strategy
from autosched.search.space.recorded import space_of
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import TrialHistory
from autosched.search.tuning.loop import BATCH
from autosched.search.tuning.study import Study
from autosched.store.recorded_space import RecordedSpace
from autosched.store.records import StudyRecord, Trial

RECALLED = 16
_RESAMPLES = 2000
_ROW_RESAMPLES = 200


@dataclass(frozen=True)
class ModelQuality:
    """Of one model on all rows of a recording; NaN where undefined.

    `spearman`, `kendall` and `pairwise` compare the order of rows that came out right. `best_1` and `best_8` are the
    speed of the best of so many predicted fastest, `found` that of the best row measured, as shares of the optimum.
    `recall` is the share of the 16 fastest among the 16 predicted fastest, `coverage` that of rows not measured that
    lie in the central 80 % of what was predicted.
    """

    spearman: float
    kendall: float
    pairwise: float
    best_1: float
    best_8: float
    recall: float
    coverage: float
    found: float


FIGURES = tuple(f.name for f in fields(ModelQuality))


@dataclass(frozen=True)
class Judged:
    """What a model said of a recording's rows (`said`), their seconds (infinite where they failed), which of them it
    had not seen, and the speed of the best one that it had, as a share of the optimum."""

    said: Prediction
    times: npt.NDArray[np.float64]
    fresh: npt.NDArray[np.bool_]
    found: float = float("nan")

    def quality(self, at: npt.NDArray[np.int64] | None = None) -> ModelQuality:
        """The figures over all rows, or over those at `at` (some of them several times)."""
        at = np.arange(len(self.times)) if at is None else at
        rank, times = self.said.lower(0.0)[at], self.times[at]
        ok = np.isfinite(times)
        rest = ok & self.fresh[at]
        log_s, sigma = np.asarray(self.said.log_s)[at], np.asarray(self.said.sigma)[at]
        return ModelQuality(
            spearman(rank[ok], times[ok]),
            kendall(rank[ok], times[ok]),
            pairwise_accuracy(rank[ok], times[ok]),
            best_at(rank, times, 1),
            best_at(rank, times, 8),
            recall_at(rank, times, RECALLED),
            coverage(log_s[rest], sigma[rest], times[rest]) if rest.any() else float("nan"),
            self.found,
        )


def model_quality(
    recording: RecordedSpace,
    model: str = "xgb",
    measured: int = 64,
    seed: int = 0,
    chosen: str = "auto",
    earlier: Earlier | None = None,
) -> ModelQuality:
    """The model after `measured` rows that the strategy `chosen` asked for; 0 of them for the clock alone, or for what
    `earlier` workloads taught.

    Raises UnknownNameError for a model or strategy that nothing provides.
    """
    return judged(recording, model, measured, seed, chosen, earlier).quality()


def judged(
    recording: RecordedSpace,
    model: str = "xgb",
    measured: int = 64,
    seed: int = 0,
    chosen: str = "auto",
    earlier: Earlier | None = None,
) -> Judged:
    """What the figures of `model_quality` are worked out from."""
    space = space_of(recording, seed=seed, threads=1)
    rows = space.locate(np.arange(space.rows))
    times = times_of(recording, space, rows)
    judge = _model(model, seed, earlier)
    trials = chosen_trials(recording, space, _model(model, seed, earlier), measured, seed, chosen)
    if trials:
        memory = TrialHistory(space)
        memory.observe(trials)
        judge.fit(memory.samples())
    seen = {t.key for t in trials}
    keys = (f"{space.plans[p].plan.name}#{r}" for p, r in zip(rows.plan.tolist(), rows.ids.tolist(), strict=True))
    best_s = min((t.measurement.time_s for t in trials if t.measurement.time_s), default=float("inf"))
    return Judged(
        judge.predict(space.features(rows), space.analytic(rows)),
        times,
        np.array([key not in seen for key in keys], np.bool_),
        float(times.min() / best_s) if trials else float("nan"),
    )


def _model(name: str, seed: int, earlier: Earlier | None) -> CostModel:
    own = cost_model(name, seed, threads=1)
    return Pretrained(own, earlier, seed, threads=1) if earlier else own


def times_of(recording: RecordedSpace, space: SearchSpace, rows: Rows) -> npt.NDArray[np.float64]:
    """Recorded seconds of these rows; infinite where they failed."""
    found = np.full(len(rows), np.inf)
    for number, plan in enumerate(recording.plans):
        mine = np.flatnonzero(rows.plan == number)
        at = plan.space().places(rows.ids[mine])
        found[mine] = np.where(plan.ok[at], plan.time_s[at], np.inf)
    return found


def chosen_trials(
    recording: RecordedSpace, space: SearchSpace, model: CostModel, count: int, seed: int, chosen: str
) -> list[Trial]:
    """The first `count` trials of a study that replays the recording, in batches as `tune` measures them."""
    if count < 1:
        return []
    device = ReplayDevice(recording=recording)
    record = StudyRecord(recording.name, {}, recording.program, recording.name, "", "replay", seed)
    study = Study(record, space, strategy(chosen, space, seed, model))
    while len(study.searched) < count:
        batch = study.ask(min(BATCH, count - len(study.searched)))
        if not batch:
            break
        for candidate in batch:
            study.tell(candidate, device.measure(device.build(candidate)))
    return study.searched


@dataclass(frozen=True)
class MedianInterval:
    """A median with its 95 % bootstrap interval; all NaN where nothing is defined."""

    median: float
    low: float
    high: float


def summary(qualities: Sequence[ModelQuality], seed: int = 0) -> dict[str, MedianInterval]:
    """Each figure over the seeds."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in FIGURES:
        values = np.array([getattr(q, name) for q in qualities], np.float64)
        values = values[np.isfinite(values)]
        if not len(values):
            found[name] = _UNDEFINED
            continue
        medians = np.median(rng.choice(values, (_RESAMPLES, len(values))), axis=1)
        found[name] = _interval(float(np.median(values)), medians)
    return found


def summary_of_rows(said: Judged) -> dict[str, MedianInterval]:
    """Each figure of what one model said, with the interval that drawing the recorded rows anew gives: for what has no
    seeds, as the clock."""
    rng, n = np.random.default_rng(0), len(said.times)
    drawn = [said.quality(rng.integers(0, n, n)) for _ in range(_ROW_RESAMPLES)]
    found = {}
    for name, value in vars(said.quality()).items():
        values = np.array([getattr(q, name) for q in drawn], np.float64)
        found[name] = _interval(value, values[np.isfinite(values)]) if np.isfinite(value) else _UNDEFINED
    return found


_UNDEFINED = MedianInterval(float("nan"), float("nan"), float("nan"))


def _interval(median: float, drawn: npt.NDArray[np.float64]) -> MedianInterval:
    low, high = (float(q) for q in np.percentile(drawn, [2.5, 97.5]))
    return MedianInterval(median, low, high)
