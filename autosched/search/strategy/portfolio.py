"""`auto`: the strategy that suits the space leads, the others step in while it stands still, and all hear everything.

With a clock `draft` leads, on recorded spaces of ours ahead of the others. A space where it is stuck may be one that
its model does not understand, so then some batches are `bayesian`'s. Without a clock `Unclocked` is alone, on public
spaces ahead of the others (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.protocol import Strategy
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.bayesian import Bayesian
from autosched.search.strategy.memory import has_clock
from autosched.search.strategy.model_guided import Auto
from autosched.search.strategy.unclocked import Unclocked
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate

_PATIENCE = 32  # trials without a new best, after which others have their turns
_EVERY = 4  # batches of which one is another's then


class Portfolio:
    """`members`: the leader first, perhaps alone. What one has proposed no other proposes again."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self.members: tuple[Strategy, ...] = (Unclocked(space, seed, None),)
        if has_clock(space):
            self.members = Auto(space, seed, model), Bayesian(space, seed, None)
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
        for trial in trials:
            cost = trial.measurement.cost if trial.measurement.ok else None
            if cost is not None and cost < self._best:
                self._best, self._since = cost, 0
            else:
                self._since += 1
        for member in self.members:
            member.observe(trials)

    def _next(self) -> Strategy:
        """The leader; while it stands still, now and then one of the others."""
        if self._since < _PATIENCE or len(self.members) < 2:
            return self.members[0]
        self._turn += 1
        turn, left = divmod(self._turn, _EVERY)
        return self.members[0] if left else self.members[1 + turn % (len(self.members) - 1)]
