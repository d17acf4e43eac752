"""The two strategies that learn nothing: `random`, and `clock`, best first by the analytic clock."""

from __future__ import annotations

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy, best_of_others
from autosched.tiling.candidate import Candidate


class Random(HistoryStrategy):
    """Uniform over the legal rows of all plans, without repetition: the baseline of every comparison."""

    ahead = True


class ByClock(HistoryStrategy):
    """The rows that the analytic clock thinks fastest, in order."""

    ahead = True

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._queue = Rows.of(0, [])

    def propose(self, n: int) -> list[Candidate]:
        free = self._queue.take(self._memory.free(self._queue))
        if len(free) < n:
            # Among this many best rows at least n are free, whichever were taken.
            wanted = max(256, 2 * (len(self._memory) + n))
            self._queue, _ = self._space.best(wanted)
            if self._memory.given_up:
                self._queue = Rows.join([best_of_others(self._space, self._memory, wanted)[0], self._queue]).distinct()
            free = self._queue.take(self._memory.free(self._queue))
            if len(free) < n:
                free = self._queue.take(self._memory.free(self._queue, whatever=True))
        rows = free.take(np.arange(min(n, len(free))))
        self._memory.take(rows)
        return self._space.candidates(rows)
