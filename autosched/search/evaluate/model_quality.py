"""How good a cost model is on a recorded space: what it says of rows that it has not seen, after it learnt from a few.

All models learn from the same rows (`training_rows`), and all figures are of the other rows: a table that knows the
rows it was given and nothing else is at chance. Everything is a function of the recordings and the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from autosched.costmodel.accuracy.metrics import best_at, coverage, kendall, pairwise_of, recall_at, spearman
from autosched.costmodel.learned.pretrained import Earlier
from autosched.costmodel.protocol import Prediction
from autosched.errors import PluginError, UsageError
from autosched.search.evaluate.given_models import ModelFactory, name_of
from autosched.search.evaluate.training_rows import RecordedRows, Training, model_of, training
from autosched.store.recorded_space import RecordedSpace

RECALLED = 16
LEAST_UNSEEN = RECALLED
"""Rows that must be left to predict: of fewer, the 16 predicted fastest are all."""
_RESAMPLES = 200


@dataclass(frozen=True)
class ModelQuality:
    """Of one model on rows of a recording; NaN where undefined.

    `spearman`, `kendall` and `pairwise` compare the order of rows that came out right. `best_1` and `best_8` are the
    speed of the best of so many predicted fastest, as a share of the fastest of these rows; `recall` is the share of
    the 16 fastest among the 16 predicted fastest, `coverage` that of rows that lie in the central 80 % of what was
    predicted. `found` is the speed of the best row that the model learnt from, as a share of the optimum.
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
_UNDEFINED = ModelQuality(*[float("nan")] * len(FIGURES))


@dataclass(frozen=True)
class Judged:
    """What a model said of a recording's rows (`said`), their seconds (infinite where they failed), which of them it
    had not seen (`fresh`), and the speed of the best one that it had, as a share of the optimum."""

    said: Prediction
    times: npt.NDArray[np.float64]
    fresh: npt.NDArray[np.bool_]
    found: float = float("nan")

    def quality(self, leak: bool = False) -> ModelQuality:
        """The figures of the rows that the model has not seen; with `leak` of all rows, those it learnt from too."""
        at = np.arange(len(self.times)) if leak else np.flatnonzero(self.fresh)
        rank, times = self.said.lower(0.0)[at], self.times[at]
        if not np.isfinite(times).any():
            return replace(_UNDEFINED, found=self.found)
        first = best_at(rank, times, 1), best_at(rank, times, 8), recall_at(rank, times, RECALLED)
        rho, tau, pairwise, covered = self.order(at)
        return ModelQuality(rho, tau, pairwise, *first, covered, self.found)

    def order(self, at: npt.NDArray[np.int64]) -> tuple[float, float, float, float]:
        """Spearman, Kendall, pairwise accuracy and coverage of the rows at `at` that came out right."""
        at = at[np.isfinite(self.times[at])]
        rank, times = self.said.lower(0.0)[at], self.times[at]
        tau = kendall(rank, times)
        log_s, sigma = np.asarray(self.said.log_s)[at], np.asarray(self.said.sigma)[at]
        covered = coverage(log_s, sigma, times) if len(at) else float("nan")
        return spearman(rank, times), tau, pairwise_of(tau, np.asarray(rank, np.float64), times), covered

    def chance(self) -> ModelQuality:
        """What a model that knows nothing is expected to score on the rows not seen: calculated, not drawn."""
        times, same = self.times[self.fresh], np.zeros(int(self.fresh.sum()))
        best_1, best_8 = best_at(same, times, 1), best_at(same, times, 8)
        return ModelQuality(
            0.0, 0.0, 0.5, best_1, best_8, recall_at(same, times, RECALLED), float("nan"), float("nan")
        )


def model_quality(
    recording: RecordedSpace,
    model: str | ModelFactory = "xgb",
    measured: int = 64,
    seed: int = 0,
    chosen: str = "random",
    earlier: Earlier | None = None,
) -> ModelQuality:
    """The model after it learnt from `measured` rows that the strategy `chosen` took (0: the clock alone, or what
    `earlier` workloads taught), on the rows that it has not seen. To compare models, `evaluate` them together.

    Raises UnknownNameError for a model or strategy that nothing provides, UsageError as `training` does.
    """
    opened = RecordedRows.of(recording)
    return judged(opened, model, training(opened, chosen, measured, seed, earlier), earlier).quality()


def judged(
    opened: RecordedRows, model: str | ModelFactory, learnt: Training, earlier: Earlier | None = None
) -> Judged:
    """What the model says of all rows after it learnt from some. Raises PluginError for one that says NaN."""
    judge = model_of(model, learnt.seed, earlier)
    if learnt.samples is not None:
        judge.fit(learnt.samples)
    said = judge.predict(opened.features, opened.analytic_s)
    wrong = np.isnan(np.asarray(said.log_s, np.float64))
    if wrong.any():
        where = f"{int(wrong.sum())} of {len(wrong)} rows of {opened.recording.name}"
        raise PluginError(f"the cost model {name_of(model)!r} predicts NaN for {where}")
    return Judged(said, opened.times, ~learnt.seen, learnt.found)


@dataclass(frozen=True)
class MeanInterval:
    """A mean over seeds with its 95 % interval; all NaN where nothing is defined."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Evaluated:
    """One model on one recording, after `measured` rows that `chosen` took: its figures on the rows not seen, what
    chance has there, and (`leak`) the means over all rows, which flatter whoever learns by heart. `values` are the
    figures of each seed."""

    model: str
    chosen: str
    measured: int
    seeds: tuple[int, ...]
    figures: dict[str, MeanInterval]
    chance: ModelQuality
    leak: ModelQuality
    values: dict[str, tuple[float, ...]]


def evaluate(
    recording: RecordedSpace,
    models: Sequence[str | ModelFactory],
    measured: int = 64,
    chosen: str = "random",
    seeds: Sequence[int] = tuple(range(10)),
    earlier: Earlier | None = None,
) -> list[Evaluated]:
    """Judge models that all learn from the same rows, those that the strategy `chosen` takes with each seed.

    Raises UsageError where fewer than 16 rows are left to predict, and as `RecordedRows.of`, `training` and `judged`.
    """
    if not seeds:
        raise UsageError("no seeds leave nothing to judge", hint="give seeds=range(10)")
    opened = RecordedRows.of(recording)
    left = max(0, len(opened.rows) - measured)
    if left < LEAST_UNSEEN:
        said = f"{measured} rows to learn from leave {left} of {recording.name} to predict"
        raise UsageError(said, hint=f"it takes {LEAST_UNSEEN}, and it has {len(opened.rows)} rows in all")
    learnt = [training(opened, chosen, measured, seed, earlier) for seed in seeds]
    found = []
    for model in models:
        taught = None if model == "analytic" else earlier  # the clock alone
        each = [judged(opened, model, rows, taught) for rows in learnt]
        chances = [one.chance() for one in each]
        chance = ModelQuality(*(float(np.mean([getattr(c, name) for c in chances])) for name in FIGURES))
        seen = [one.quality(leak=True) for one in each]
        leak = ModelQuality(*(float(np.mean([getattr(q, name) for q in seen])) for name in FIGURES))
        quality = [one.quality() for one in each]
        values = {name: tuple(getattr(q, name) for q in quality) for name in FIGURES}
        sums = summary(each)
        found.append(Evaluated(name_of(model), chosen, measured, tuple(seeds), sums, chance, leak, values))
    return found


def summary(each: Sequence[Judged], leak: bool = False) -> dict[str, MeanInterval]:
    """Each figure's mean over the seeds (draws of the rows to learn from) with its 95 % interval.

    That of an order, and of coverage, speaks of other rows and other seeds: rows and seeds are drawn anew together, 200
    times, and its percentiles are wider than 2.5 and 97.5 by what a t interval of so few seeds is wider than a normal
    one. The optimum of rows drawn anew is another one, so the intervals of what is a share of it are t intervals over
    seeds alone, of these rows; NaN where the seeds are no replicates (one seed, or the same figure for all).
    """
    rng, rows, count = np.random.default_rng(0), len(each[0].times), len(each)
    quality = [one.quality(leak) for one in each]
    values = {name: np.array([getattr(q, name) for q in quality], np.float64) for name in FIGURES}
    found = {n: _mean_of(v) if n in _ORDER else _over_seeds(v) for n, v in values.items()}
    drawn = np.empty((_RESAMPLES, len(_ORDER)))
    for number in range(_RESAMPLES):
        at = rng.integers(0, rows, rows)
        times = np.bincount(rng.integers(0, count, count), minlength=count)
        some = np.flatnonzero(times).tolist()
        scored = [each[s].order(at if leak else at[each[s].fresh[at]]) for s in some]
        drawn[number] = np.average(np.array(scored), axis=0, weights=times[some])
    for column, name in enumerate(_ORDER):
        fine, mean = drawn[np.isfinite(drawn[:, column]), column], found[name].mean
        if np.isfinite(mean) and len(fine):
            low, high = np.quantile(fine, [tail := _tail(count), 1 - tail])
            found[name] = MeanInterval(mean, float(min(low, mean)), float(max(high, mean)))
    return found


_ORDER = ("spearman", "kendall", "pairwise", "coverage")


def _mean_of(values: npt.NDArray[np.float64]) -> MeanInterval:
    """The mean of what is defined, without an interval."""
    values = values[np.isfinite(values)]
    return MeanInterval(float(values.mean()) if len(values) else float("nan"), float("nan"), float("nan"))


def _over_seeds(values: npt.NDArray[np.float64]) -> MeanInterval:
    """The mean of shares (0 to 1) with its t interval."""
    from scipy.stats import t

    values = values[np.isfinite(values)]
    mean, count = _mean_of(values).mean, len(values)
    if count < 2 or np.ptp(values) <= 1e-12 * max(1.0, abs(mean)):
        return MeanInterval(mean, float("nan"), float("nan"))
    half = float(t.ppf(0.975, count - 1)) * float(values.std(ddof=1)) / np.sqrt(count)
    return MeanInterval(mean, max(0.0, mean - half), min(1.0, mean + half))


def _tail(seeds: int) -> float:
    """The lower percentile: 0.025 for many seeds, less for few (Hesterberg 2015, doi 10.1080/00031305.2015.1089789)."""
    from scipy.stats import norm, t

    return float(norm.cdf(-np.sqrt(seeds / (seeds - 1)) * t.ppf(0.975, seeds - 1))) if seeds > 1 else 0.025
