"""`Unclocked`, which is `auto` where there is no clock: rows spread over the space first, then those of which a
Gaussian process expects the largest improvement.

Settings were chosen on public spaces, each family of them judged with settings chosen on the others
(docs/experiments/search.md): what matters is that the first rows are spread and few.
"""

from __future__ import annotations

import numpy as np

from autosched.costmodel.learned.one_thread import one_thread
from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.coordinates import Coordinates
from autosched.search.strategy.memory import HistoryStrategy, draw
from autosched.search.strategy.moves import neighbours
from autosched.search.strategy.process import Process, expected_improvement

_SMALL, _LARGE, _MANY = 1, 4, 32  # candidates between two fits, before and after so many trials
_FIRST = 8  # spread rows before the first fit
AMONG = 512  # free rows that a spread one is chosen among
_POOL = 3000  # random rows looked at for a batch
_AROUND = 5  # and all neighbours of so many of the fastest rows
_OFTEN, _EACH = 48, 1 / 8  # trials up to which scales are sought for each batch; after that when so many more came
_MOST = 400  # trials that the process is fitted to, the fastest first: its cost grows with their cube
_FAILED = 0.5  # ln seconds above the slowest: what a failure counts as


class Unclocked(HistoryStrategy):
    """Batches are small (`batch`), since what one row teaches changes which is best next, the more the fewer there
    are. Each fit starts from the length scales of the fit before, so a study that is continued after a fit may propose
    other rows than one that never stopped."""

    @property
    def batch(self) -> int:
        return _SMALL if self._memory.measured < _MANY else _LARGE

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._coordinates = Coordinates(space, twos=True)
        self._process: Process | None = None
        self._sought_at = 0.0

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        if self._memory.measured < _FIRST or not len(self._memory.fastest(1)):
            return self._spread(n, rng)
        with one_thread():
            return self._improving(n, rng)

    def _spread(self, n: int, rng: np.random.Generator) -> Rows:
        """Rows far from those taken and from each other, of a random sample."""
        sample = self._spread_among(rng)
        if not len(sample):
            return sample
        z, taken = self._coordinates(sample), self._coordinates(self._memory.taken())
        chosen: list[int] = []
        far = np.full(len(z), np.inf)
        for known in taken:
            far = np.minimum(far, np.sum((z - known) ** 2, axis=1))
        while len(chosen) < min(n, len(z)):
            chosen.append(int(np.argmax(far)))
            far = np.minimum(far, np.sum((z - z[chosen[-1]]) ** 2, axis=1))
        return sample.take(chosen)

    def _spread_among(self, rng: np.random.Generator) -> Rows:
        """Free rows at random that spread ones are chosen among."""
        return draw(self._space, self._memory, AMONG, rng)

    def _improving(self, n: int, rng: np.random.Generator) -> Rows:
        """The rows of largest expected improvement; each makes the process surer of the rows around it."""
        parts = [neighbours(self._space, row, rng) for row in self._each(self._memory.fastest(_AROUND))]
        near = Rows.join(parts)
        near = near.take(self._memory.free(near))
        pool = Rows.join([near, draw(self._space, self._memory, _POOL, rng)]).distinct()
        if not len(pool):
            return pool
        process = self._fitted()
        posterior = process.posterior(self._coordinates(pool))
        chosen: list[int] = []
        for _ in range(min(n, len(pool))):
            gain = expected_improvement(posterior.mean, np.sqrt(posterior.variance), process.lowest)
            gain[chosen] = -np.inf
            chosen.append(int(np.argmax(gain)))
            posterior.seen(chosen[-1])
        return pool.take(chosen)

    @staticmethod
    def _each(rows: Rows) -> list[Rows]:
        return [rows.take([i]) for i in range(len(rows))]

    def _fitted(self) -> Process:
        rows = self._memory.rows()
        log_s = np.log(self._memory.seconds(rows))
        fine = np.isfinite(log_s)
        log_s[~fine] = log_s[fine].max() + _FAILED
        keep = np.argsort(log_s, kind="stable")[:_MOST]
        x = self._coordinates(rows.take(keep))
        self._process = self._process or Process(x.shape[1])
        count = self._memory.measured
        seek = count < _OFTEN or count >= self._sought_at * (1 + _EACH)
        self._sought_at = count if seek else self._sought_at
        self._process.fit(x, log_s[keep], seek)
        return self._process
