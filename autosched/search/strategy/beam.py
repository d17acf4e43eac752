"""`beam`: decisions one after the other; for each, every value with each row of the beam is tried, and the best stay.

Rows are always whole, so what stands in for decisions still open are the values of the row that is extended; the clock
says where to begin, and where there is a model it says which extensions are worth measuring.
"""

from __future__ import annotations

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy, draw

_WIDTH = 4
_FIRST = 8  # rows measured to begin with, of which the beam takes the best
_MEASURED = 8  # extensions of a decision that are measured, where a model ranks them; all, where none does


class Beam(HistoryStrategy):
    """After the last decision it starts again with the first, from the best rows of all."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._model = model
        self._waiting = Rows.of(0, [])  # extensions to propose
        self._decision = -1

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        rows = self._waiting.take(self._memory.free(self._waiting))
        if not len(rows) and self._space.rows:
            rows = self._waiting = self._extended(rng)
        return rows

    def _extended(self, rng: np.random.Generator) -> Rows:
        """The extensions by the next decision that has any new ones."""
        if self._memory.measured < _FIRST:
            best, _ = self._space.best(_FIRST)
            flat = len(set(self._space.analytic(best).tolist())) == 1  # no clock: its order says nothing
            rows = draw(self._space, self._memory, _FIRST, rng) if flat else best
            return rows.take(self._memory.free(rows))
        beam = self._memory.fastest(_WIDTH)
        most = max((len(e.plan.space.decisions) for e in self._space.plans), default=0)
        for _ in range(most if len(beam) else 0):
            self._decision = (self._decision + 1) % most
            found = Rows.join([self._values(beam.take([i]), self._decision) for i in range(len(beam))]).distinct()
            found = found.take(self._memory.free(found))
            if len(found):
                return self._ranked(found, rng)
        return Rows.of(0, [])

    def _values(self, row: Rows, decision: int) -> Rows:
        """The legal rows with any value of one decision, the others as they are."""
        plan, start = int(row.plan[0]), int(row.ids[0])
        space = self._space.plans[plan].plan.space
        if decision >= len(space.decisions):
            return Rows.of(0, [])
        stride, radix = space.strides[decision], space.radices[decision]
        ids = start + (np.arange(radix, dtype=np.int64) - (start // stride) % radix) * stride
        ids = np.unique(space.canonical(ids))
        return Rows.of(plan, ids[space.legal(ids)])

    def _ranked(self, rows: Rows, rng: np.random.Generator) -> Rows:
        if self._model is None or len(rows) <= _MEASURED:
            return rows.take(rng.permutation(len(rows)))
        self._model.fit(self._memory.samples())
        score = self._model.predict(self._space.features(rows), self._space.analytic(rows)).lower(0.0)
        return rows.take(np.argsort(score, kind="stable")[:_MEASURED])
