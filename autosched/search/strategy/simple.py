"""The two strategies that learn nothing: `random`, and `clock`, best first by the analytic clock."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import TrialHistory, draw
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate


class Random:
    """Uniform over the legal rows of all plans, without repetition: the baseline of every comparison."""

    ahead = True

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self._space = space
        self._seed = seed
        self._memory = TrialHistory(space)

    def propose(self, n: int) -> list[Candidate]:
        # The generator depends on the seed and on how many rows are taken, so a continued study goes on as if it had
        # never stopped.
        rows = draw(self._space, self._memory, n, np.random.default_rng([self._seed, len(self._memory)]))
        self._memory.take(rows)
        return self._space.candidates(rows)

    def observe(self, trials: Sequence[Trial]) -> None:
        self._memory.observe(trials)


class ByClock:
    """The rows that the analytic clock thinks fastest, in order."""

    ahead = True

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self._space = space
        self._memory = TrialHistory(space)
        self._queue = Rows.of(0, [])

    def propose(self, n: int) -> list[Candidate]:
        free = self._queue.take(self._memory.free(self._queue))
        if len(free) < n:
            # Among this many best rows at least n are free, whichever were taken.
            self._queue, _ = self._space.best(max(256, 2 * (len(self._memory) + n)))
            free = self._queue.take(self._memory.free(self._queue))
        rows = free.take(np.arange(min(n, len(free))))
        self._memory.take(rows)
        return self._space.candidates(rows)

    def observe(self, trials: Sequence[Trial]) -> None:
        self._memory.observe(trials)
