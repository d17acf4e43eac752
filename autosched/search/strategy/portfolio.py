"""`auto`: the strategy that suits the space leads, the others step in where it misleads or stands still, and all hear
everything.

With a clock `draft` leads, on recorded spaces of ours ahead of the others. While what was measured says that the clock
misleads, a search leads that asks it little: where the clock's favourites turn out slower than rows drawn at random
(`Opening`), or where what it says and what was measured are ranked the wrong way round. Two that learn differently see
more than one: after a while every fourth place is of the one that does not lead. A space where `draft` is stuck may be
one that its model does not understand, so then some batches are `bayesian`'s. Without a clock `Unclocked` is alone, on
public spaces ahead of the others (docs/benchmarks.md). Who leads follows from the trials alone, so a study that is
continued has the same leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from autosched.costmodel.accuracy.metrics import spearman
from autosched.costmodel.protocol import CostModel
from autosched.search.protocol import Strategy
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.bayesian import Bayesian
from autosched.search.strategy.memory import TrialHistory, has_clock
from autosched.search.strategy.model_guided import Auto
from autosched.search.strategy.opening import Doubting, Opening
from autosched.search.strategy.unclocked import Unclocked
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate

_PATIENCE = 32  # trials without a new best, after which others have their turns
_EVERY = 4  # batches of which one is another's then
_MISLED = 2.326  # standard deviations below no correlation: of one look at a clock that says nothing, once in a hundred
_FEWEST = 12  # trials that came out right before that is asked
_SETTLED, _SHARED = 16, 4  # rows after which one of so many places is of the one that does not lead


class Portfolio:
    """`members`: the one that follows the clock first, last the one that asks it least; without a clock one alone. What
    one has proposed no other proposes again."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self.members: tuple[Strategy, ...] = (Unclocked(space, seed, None),)
        if has_clock(space):
            self.members = Auto(space, seed, model), Bayesian(space, seed, None), Doubting(space, seed, None)
        self._space = space
        self._seed = seed
        self._history = TrialHistory(space)
        self._seconds: dict[str, float] = {}  # of each trial; infinite where it did not come out right
        self._proposed: set[str] = set()
        self._best = np.inf
        self._since = 0  # trials since the last new best

    @property
    def batch(self) -> int | None:
        """The leader's."""
        wanted: int | None = getattr(self._leader, "batch", None)
        return wanted

    @property
    def ahead(self) -> bool:
        """The leader's; not before it is known who leads."""
        return bool(getattr(self._leader, "ahead", False)) and self._opening.measured(self._seconds)

    def propose(self, n: int) -> list[Candidate]:
        if len(self.members) < 2:
            return self._of(self.members, n)
        found = self._new(self._opening.candidates)[:n]
        self._proposed.update(c.key for c in found)
        n -= len(found)
        shared = self._shared(n)
        first = self._next(n)
        found += self._of([first, *(m for m in self.members if m is not first)], n - shared)
        second = self.members[-1 if self._leader is self.members[0] else 0]
        return found + self._of([second, *(m for m in self.members if m is not second)], shared)

    def observe(self, trials: Sequence[Trial]) -> None:
        self._proposed.update(t.key for t in trials)
        self._history.observe(trials)
        for trial in trials:
            cost = trial.measurement.cost if trial.measurement.ok else None
            self._seconds[trial.key] = np.inf if cost is None else cost
            if cost is not None and cost < self._best:
                self._best, self._since = cost, 0
            else:
                self._since += 1
        for member in self.members:
            member.observe(trials)

    def _of(self, order: Sequence[Strategy], n: int) -> list[Candidate]:
        """New candidates of the first of these; of the next when it has no more."""
        found: list[Candidate] = []
        left = list(order)
        while left and len(found) < n:
            wanted = n - len(found)
            given = left[0].propose(wanted)
            new = self._new(given)
            self._proposed.update(c.key for c in new)
            found += new
            if len(given) < wanted:
                left.pop(0)  # what others have left is soon found
        return found

    def _new(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return [c for c in candidates if c.key not in self._proposed]

    @cached_property
    def _opening(self) -> Opening:
        return Opening(self._space, self._seed)

    @property
    def _leader(self) -> Strategy:
        return self.members[-1] if len(self.members) > 1 and self._misled() else self.members[0]

    def _next(self, n: int) -> Strategy:
        """The leader; while `draft` stands still, now and then another."""
        if self._leader is self.members[0] and self._since >= _PATIENCE:
            turn = (self._since - _PATIENCE) // max(n, 1)
            return self.members[turn % _EVERY == _EVERY - 1]
        return self._leader

    def _shared(self, n: int) -> int:
        """How many of the next `n` places are of the one that does not lead."""
        at = len(self._proposed)
        return sum(place >= _SETTLED and place % _SHARED == _SHARED - 1 for place in range(at, at + n))

    def _misled(self) -> bool:
        """Whether the opening says so; or whether what was measured and the clock are ranked the wrong way round,
        beyond chance: by Spearman's coefficient of what came out right."""
        if self._opening.misled(self._seconds):
            return True
        if self._history.measured < _FEWEST:  # to describe rows lists their plans
            return False
        clock, times = self._history.clock_and_times()
        if len(times) < _FEWEST:
            return False
        return bool(spearman(clock, times) * np.sqrt(len(times) - 1) < -_MISLED)
