"""`annealing`: a walk over legal neighbours that takes worse rows with a chance that falls as it cools down."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy
from autosched.search.strategy.moves import neighbours
from autosched.store.records import Trial

# A row slower by a share s is taken with chance exp(-s / temperature): at first a quarter slower in one of two or three
# cases, after 100 trials hardly anything slower.
_HOT = 0.25
_COOLING = 0.97  # for each trial
_COLD = 0.001
_STUCK = 40  # trials without a step, after which it is heated again at the best row


class Annealing(HistoryStrategy):
    """Learns from one trial at a time (`batch`); of a batch of several, each may be a step, in order."""

    batch = 1

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._at: Rows | None = None
        self._at_s = np.inf
        self._heard = 0
        self._age = 0  # trials since it was hot
        self._still = 0  # trials since the last step

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        if self._at is None:
            return Rows.of(0, [])
        rows = neighbours(self._space, self._at, rng)
        rows = rows.take(self._memory.free(rows))
        if not len(rows):
            self._still = _STUCK  # no neighbour is left
        return rows

    def observe(self, trials: Sequence[Trial]) -> None:
        super().observe(trials)
        for trial in trials:
            plan = self._space.number.get(trial.plan)
            if plan is not None:
                self._step(Rows.of(plan, [trial.row]))

    def _step(self, row: Rows) -> None:
        """Move to a measured row, or stay."""
        rng = np.random.default_rng([self._seed, 1, self._heard])
        self._heard += 1
        self._age += 1
        self._still += 1
        time_s = float(self._memory.seconds(row)[0])
        temperature = max(_COLD, _HOT * _COOLING**self._age)
        slower = (time_s - self._at_s) / self._at_s if np.isfinite(self._at_s) else -1.0
        if time_s < np.inf and (slower <= 0 or rng.random() < exp(-slower / temperature)):
            self._at, self._at_s, self._still = row, time_s, 0
        elif self._still >= _STUCK:
            best = self._memory.fastest(1)
            if len(best):
                self._at, self._at_s = best, float(self._memory.seconds(best)[0])
            self._age = self._still = 0
