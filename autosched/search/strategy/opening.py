"""`Opening`: the four trials with which `auto` begins where there is a clock. They ask whether its favourites are fast.

A clock that ranks a space well on the whole may order its favourites wrongly: in a layer normalisation whose data lie
in main memory they are slower than a row drawn at random. Their own times do not show that, so two favourites are
measured beside two rows at random.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import TrialHistory, draw
from autosched.search.strategy.model_guided import Auto
from autosched.search.strategy.unclocked import AMONG, Unclocked
from autosched.tiling.candidate import Candidate

_EACH = 2  # favourites, and rows drawn


class Opening:
    """Favourites and rows drawn, in turn. They follow from space and seed: a study that is continued has the same."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        favourites = Auto(space, seed, None).propose(_EACH)
        self._favourites = [c.key for c in favourites]
        plans = sorted({space.number[c.plan.name] for c in favourites})
        rows = drawn(space, TrialHistory(space), 2 * _EACH, np.random.default_rng([seed, 0]), plans)
        others = [c for c in space.candidates(rows) if c.key not in self._favourites][:_EACH]
        self._drawn = [c.key for c in others]
        pairs = zip_longest(favourites, others)
        self.candidates: list[Candidate] = [c for pair in pairs for c in pair if c is not None]

    def measured(self, seconds: Mapping[str, float]) -> bool:
        """Whether these trials, by key, have all of it."""
        return all(c.key in seconds for c in self.candidates)

    def misled(self, seconds: Mapping[str, float]) -> bool:
        """Whether the favourites turned out slower than the rows drawn, by the medians of those that came out right
        (others are infinite)."""
        if not self.measured(seconds):
            return False
        favourites, others = ([seconds[key] for key in keys] for keys in (self._favourites, self._drawn))
        right = [[s for s in group if np.isfinite(s)] for group in (favourites, others)]
        return all(right) and bool(np.median(right[1]) < np.median(right[0]))


class Doubting(Unclocked):
    """`Unclocked` beside a clock whose order of favourites is doubted: its first rows are spread over the half that the
    clock thinks faster, since the slowest rows (which are far from all others) it seldom misjudges."""

    def _spread_among(self, rng: np.random.Generator) -> Rows:
        sample = super()._spread_among(rng)
        return sample.take(np.sort(_faster(self._space, sample, 1)))


def drawn(
    space: SearchSpace, memory: TrialHistory, n: int, rng: np.random.Generator, plans: Collection[int] = ()
) -> Rows:
    """Free rows at random, up to `n`, of the half that the clock thinks faster. Of a space that is too large to be
    listed for that, of samples of these plans."""
    sample = _known(space, memory, plans, rng) if space.large else draw(space, memory, AMONG, rng)
    faster = _faster(space, sample, n)
    return sample.take(faster[np.sort(rng.permutation(len(faster))[:n])])


def _known(space: SearchSpace, memory: TrialHistory, plans: Collection[int], rng: np.random.Generator) -> Rows:
    found = Rows.join([Rows.of(number, space.sampled(number)[0]) for number in plans])
    found = found.take(memory.free(found))
    return found.take(np.sort(rng.permutation(len(found))[:AMONG]))


def _faster(space: SearchSpace, rows: Rows, least: int) -> npt.NDArray[np.intp]:
    """Which of these rows the clock thinks faster, the fastest first: half of them, or `least`."""
    if not len(rows):
        return np.zeros(0, np.intp)
    return np.argsort(space.analytic(rows), kind="stable")[: max(least, len(rows) // 2)]
