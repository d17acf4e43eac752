"""Ends a search before its budget: at a time of one call, or where too little is left to gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autosched.costmodel.learned.learner import load
from autosched.costmodel.protocol import CostModel, Floats
from autosched.errors import UsageError
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import TrialHistory, draw
from autosched.store.records import Trial

_FEWEST = 16  # the least measured rows for a prediction
_BEST = 20_000  # rows predicted: the clock's best, some at random, and mutants of the fastest
_RANDOM = 2_000
_MUTANTS = 512
_PARENTS = 8
_JUDGED = 32  # the last predictions, which give the model's error
_NEAR = 0.3  # ln units above the best: predictions of slower rows say nothing of the rows that may win
_FEWEST_JUDGED = 8


@dataclass(frozen=True)
class Goals:
    """The goals that end a search before its budget; by default there are none.

    `time_s`: the search ends when a call takes no longer. `least_gain`: a share of the best time (0.01 is 1 %); the
    search ends once the most promising row left is expected to save less. Raises UsageError for impossible figures.
    """

    time_s: float | None = None
    least_gain: float | None = None

    def __post_init__(self) -> None:
        if self.time_s is not None and not self.time_s > 0:
            raise UsageError(f"a call cannot take {self.time_s} s", hint="give a time above 0")
        if self.least_gain is not None and not 0 < self.least_gain < 1:
            raise UsageError(f"the least gain is {self.least_gain}, and must be between 0 and 1", hint="0.01 is 1 %")

    def reached(self, best_s: float | None) -> bool:
        return self.time_s is not None and best_s is not None and best_s <= self.time_s


class Outlook:
    """Estimates what one more measurement saves, by a cost model of its own that does not depend on the strategy.

    The model's error is taken from its predictions of the last promising rows, made before they were measured, since
    ensembles underestimate their error.
    """

    def __init__(self, space: SearchSpace, model: CostModel, seed: int = 0) -> None:
        self._space = space
        self._model = model
        self._seed = seed
        self._memory = TrialHistory(space)
        self._fitted = False
        self._errors: list[float] = []

    def observe(self, trials: Sequence[Trial]) -> None:
        """Finished trials of the search, each once; they test the model before it learns from them."""
        if self._fitted:
            self._judge(trials)
        self._memory.observe(trials)

    def gain(self) -> float | None:
        """The share of the best time that the most promising row left is expected to save; None while too few rows are
        measured."""
        if len(self._memory.fastest(_FEWEST)) < _FEWEST:
            return None
        self._model.fit(self._memory.samples())
        self._fitted = True
        if len(self._errors) < _FEWEST_JUDGED:
            return None
        rows = self._left()
        if not len(rows):
            return 0.0
        said = self._model.predict(*self._space.described(rows))
        off = float(np.sqrt(np.mean(np.square(self._errors[-_JUDGED:]))))
        best = self._memory.best_log_s
        return float(np.max(saved(said.log_s - best, np.maximum(said.sigma, off)) * said.valid))

    def _judge(self, trials: Sequence[Trial]) -> None:
        fine = [t for t in trials if t.measurement.ok and t.measurement.cost and t.plan in self._space.number]
        if fine:
            plans = np.array([self._space.number[t.plan] for t in fine], np.int32)
            rows = Rows(plans, np.array([t.row for t in fine], np.int64))
            said = np.asarray(self._model.predict(*self._space.described(rows)).log_s, np.float64)
            took = np.log([t.measurement.cost or np.nan for t in fine])
            near = np.minimum(said, took) < self._memory.best_log_s + _NEAR
            self._errors += (said - took)[near].tolist()

    def _left(self) -> Rows:
        """Promising rows that are not measured yet."""
        rng = np.random.default_rng([self._seed, len(self._memory)])
        parents = self._memory.fastest(_PARENTS)
        mutants = self._space.mutate(parents.take(rng.integers(0, len(parents), _MUTANTS)), rng)
        some = draw(self._space, self._memory, min(_RANDOM, self._space.rows // 8), rng)  # few are soon drawn
        rows = Rows.join([self._space.best(_BEST)[0], mutants, some]).distinct()
        return rows.take(self._memory.free(rows))


def saved(log_ratio: Floats, sigma: Floats) -> npt.NDArray[np.float64]:
    """The expected share of the best time that rows save, where ln(time / best) is normal: mean `log_ratio`, deviation
    `sigma`; a slower row saves nothing."""
    load("scipy.special")
    from scipy.special import ndtr

    s = np.maximum(np.asarray(sigma, np.float64), 1e-9)
    mean = np.asarray(log_ratio, np.float64)
    return np.asarray(ndtr(-mean / s) - np.exp(mean + s * s / 2) * ndtr(-mean / s - s), np.float64)
