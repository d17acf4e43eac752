"""`ils`: greedy iterated local search, as Kernel Tuner's `greedy_ils` is set: to the first better neighbour, and from
where there is none on by a short random walk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy, draw
from autosched.search.strategy.moves import neighbours, walk
from autosched.store.records import Trial

# Kernel Tuner 1.4, strategies/greedy_ils.py: random_walk 0.3, no_improvement 50.
_WALK = 0.3  # of the decisions are changed by a walk
_PATIENCE = 50  # climbs without a better end before a fresh start


class GreedyILS(HistoryStrategy):
    """Learns from one trial at a time (`batch`); a batch of several holds neighbours of one row."""

    batch = 1

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._base: Rows | None = None
        self._base_s = np.inf
        self._landing: tuple[int, int] | None = None  # where the last walk led, not measured yet
        self._peak_s = np.inf  # the best end of a climb
        self._idle = 0

    def observe(self, trials: Sequence[Trial]) -> None:
        super().observe(trials)
        for trial in trials:
            plan = self._space.number.get(trial.plan)
            if plan is None:
                continue
            row = Rows.of(plan, [trial.row])
            time_s = float(self._memory.seconds(row)[0])
            if self._landing == (plan, trial.row):
                self._base, self._base_s, self._landing = row, time_s, None
            elif self._base is None or time_s < self._base_s:
                self._base, self._base_s = row, time_s

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        """Free neighbours of the row that the climb has reached; where there are none, the end of a walk from it."""
        while self._base is not None and self._landing is None:
            around = neighbours(self._space, self._base, rng)
            free = around.take(self._memory.free(around))
            if len(free):
                return free
            self._idle = 0 if self._base_s < self._peak_s else self._idle + 1
            self._peak_s = min(self._peak_s, self._base_s)
            landed = self._landed(rng)
            if landed is None:
                break
            time_s = float(self._memory.seconds(landed)[0])
            if np.isnan(time_s):
                if not self._memory.free(landed)[0]:
                    break  # somebody is measuring it
                self._landing = int(landed.plan[0]), int(landed.ids[0])
                return landed
            self._base, self._base_s = landed, time_s  # measured before: the climb goes on from there
        return Rows.of(0, [])

    def _landed(self, rng: np.random.Generator) -> Rows | None:
        assert self._base is not None
        if self._idle < _PATIENCE:
            decisions = len(self._space.plans[int(self._base.plan[0])].plan.space.decisions)
            return walk(self._space, self._base, max(1, int(_WALK * decisions)), rng)
        self._idle = 0
        fresh = draw(self._space, self._memory, 1, rng)
        return fresh if len(fresh) else None
