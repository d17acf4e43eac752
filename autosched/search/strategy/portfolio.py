"""`auto`: the strategy that suits the space leads, the others step in where it misleads or stands still, and all hear
everything.

With a clock `draft` leads, on recorded spaces of ours ahead of the others. While what was measured says that the clock
orders rows the wrong way round, `Unclocked` leads, which asks no clock. A space where `draft` is stuck may be one that
its model does not understand, so then some batches are `bayesian`'s. Without a clock `Unclocked` is alone, on public
spaces ahead of the others (docs/benchmarks.md). Who leads follows from the trials alone, so a study that is continued
goes on as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autosched.costmodel.accuracy.metrics import spearman
from autosched.costmodel.protocol import CostModel
from autosched.search.protocol import Strategy
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.bayesian import Bayesian
from autosched.search.strategy.memory import TrialHistory, has_clock
from autosched.search.strategy.model_guided import Auto
from autosched.search.strategy.unclocked import Unclocked
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate

_PATIENCE = 32  # trials without a new best, after which others have their turns
_EVERY = 4  # batches of which one is another's then
_MISLED = 2.326  # standard deviations below no correlation: of one look at a clock that says nothing, once in a hundred
_FEWEST = 12  # trials that came out right before that is asked


class Portfolio:
    """`members`: the leader first, perhaps alone, and last the one that asks no clock. What one has proposed no
    other proposes again."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self.members: tuple[Strategy, ...] = (Unclocked(space, seed, None),)
        if has_clock(space):
            self.members = Auto(space, seed, model), Bayesian(space, seed, None), *self.members
        self._history = TrialHistory(space)
        self._proposed: set[str] = set()
        self._best = np.inf
        self._since = 0  # trials since the last new best
        self._turn = 0

    @property
    def batch(self) -> int | None:
        """The leader's."""
        wanted: int | None = getattr(self.members[0], "batch", None)
        return wanted

    @property
    def ahead(self) -> bool:
        """The leader's."""
        return bool(getattr(self.members[0], "ahead", False))

    def propose(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        first = self._next()
        order = [first, *(m for m in self.members if m is not first)]
        while order and len(found) < n:
            wanted = n - len(found)
            given = order[0].propose(wanted)
            new = [c for c in given if c.key not in self._proposed]
            self._proposed.update(c.key for c in new)
            found += new
            if len(given) < wanted:
                order.pop(0)  # it has no more; what others have left is soon found
        return found

    def observe(self, trials: Sequence[Trial]) -> None:
        self._proposed.update(t.key for t in trials)
        self._history.observe(trials)
        for trial in trials:
            cost = trial.measurement.cost if trial.measurement.ok else None
            if cost is not None and cost < self._best:
                self._best, self._since = cost, 0
            else:
                self._since += 1
        for member in self.members:
            member.observe(trials)

    def _next(self) -> Strategy:
        """The leader; while it stands still, now and then another."""
        if len(self.members) < 2:
            return self.members[0]
        if self._misled():
            return self.members[-1]
        if self._since < _PATIENCE:
            return self.members[0]
        self._turn += 1
        return self.members[0 if self._turn % _EVERY else 1]

    def _misled(self) -> bool:
        """Whether what was measured and the clock are ranked the wrong way round, beyond chance: by Spearman's
        coefficient of what came out right."""
        clock, times = self._history.clock_and_times()
        if len(times) < _FEWEST:
            return False
        return bool(spearman(clock, times) * np.sqrt(len(times) - 1) < -_MISLED)
