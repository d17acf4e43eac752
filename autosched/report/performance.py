"""Performance of strategies against random search: 0 where it is expected to be, 1 at the optimum, below 0 worse.

The scale of the published methodology (Willemsen et al. 2024, doi 10.1016/j.future.2024.05.021), so that spaces of
different times and difficulty can be put together. It needs a space that is known whole (`search.evaluate.landscape`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autosched.report.statistics import Floats
from autosched.search.evaluate.compare import Row
from autosched.search.evaluate.landscape import Landscape

POINTS = 64
"""Moments at which performance over time is taken, evenly up to the end."""


@dataclass(frozen=True)
class Performance:
    """By strategy: `over_trials` (seeds, trials), and `over_time` (seeds, POINTS) at the moments `moments_s`, which is
    empty where the recording says nothing of costs."""

    over_trials: dict[str, Floats]
    over_time: dict[str, Floats]
    moments_s: Floats

    def scores(self, name: str, trials: int | None = None) -> Floats:
        """For each seed the mean over the first `trials`, or all of them: the area under the curve up to a budget."""
        return np.asarray(self.over_trials[name][:, :trials].mean(axis=1), np.float64)

    def scores_of_time(self, name: str, until_s: float | None = None) -> Floats:
        """For each seed the mean over time until some moment, or all of it; empty where costs are not known."""
        if not len(self.moments_s):
            return np.zeros(0)
        points = POINTS if until_s is None else max(1, int(np.sum(self.moments_s <= until_s * (1 + 1e-9))))
        return np.asarray(self.over_time[name][:, :points].mean(axis=1), np.float64)

    def until_s(self, trials: int) -> float:
        """The time in which random search makes so many trials, as `moments_s` has it."""
        all_trials = int(next(iter(self.over_trials.values())).shape[1])
        return float(self.moments_s[-1]) * trials / all_trials


def performance(
    curves: Mapping[str, Floats], rows: Sequence[Row], seeds: Sequence[int], landscape: Landscape
) -> Performance:
    """From best seconds so far (seeds, trials) and the trials themselves, which say when they ended.

    Time runs until random search would have made as many trials, each as long as the average row takes.
    """
    trials = next(iter(curves.values())).shape[1]
    by_trial = landscape.expected_s(np.arange(1, trials + 1))
    over_trials = {name: scaled(curve, by_trial, landscape) for name, curve in curves.items()}
    if not np.isfinite(landscape.cost_s) or landscape.cost_s <= 0:
        return Performance(over_trials, {}, np.zeros(0))
    moments = landscape.cost_s * trials * np.arange(1, POINTS + 1) / POINTS
    by_moment = landscape.expected_s(np.maximum(1, moments / landscape.cost_s))
    best = _best_by(moments, rows, curves, seeds)
    return Performance(over_trials, {name: scaled(c, by_moment, landscape) for name, c in best.items()}, moments)


def scaled(best_s: Floats, random_s: Floats, landscape: Landscape) -> Floats:
    """Best times so far on the scale from random (0) to optimum (1).

    Where nothing came out right yet the slowest row counts, where nothing was tried (NaN) what is expected of random
    search; where that is sure of the optimum, 1 for having it and 0 for not."""
    best_s = np.minimum(np.where(np.isnan(best_s), random_s, best_s), landscape.times_s[-1])
    room = random_s - landscape.optimum_s
    sure = room <= 1e-12 * landscape.optimum_s
    return np.where(sure, best_s <= landscape.optimum_s, (random_s - best_s) / np.where(sure, 1.0, room))


def _best_by(
    moments: Floats, rows: Sequence[Row], names: Mapping[str, Floats], seeds: Sequence[int]
) -> dict[str, Floats]:
    """Best seconds so far at each moment, by strategy: shape (seeds, moments); NaN before the first trial ended, and
    infinite until one came out right."""
    found = {name: np.full((len(seeds), len(moments)), np.nan) for name in names}
    place = {seed: i for i, seed in enumerate(seeds)}
    for row in rows:  # in the order of trials, so later rows are better ones
        best_s = np.inf if row.best_s is None else row.best_s
        found[row.strategy][place[row.seed], np.searchsorted(moments, row.elapsed_s) :] = best_s
    return found
