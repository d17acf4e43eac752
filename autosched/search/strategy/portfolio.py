"""`auto`: whoever found the fastest row leads, the other has a batch now and then, and both hear everything.

With a clock `draft` begins. The third batch is `Unclocked`'s, which asks no clock: where it finds a faster row than the
clock has, it leads, and `draft` has every third batch. Else it is asked again where no new best comes. Without a clock
`Unclocked` is alone (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.protocol import Strategy
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import has_clock
from autosched.search.strategy.model_guided import Auto
from autosched.search.strategy.unclocked import Unclocked
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate

_BEFORE = 2  # batches of the first member before the other has a turn
_EVERY = 3  # batches of which one belongs to who does not lead
_PATIENCE = 32  # trials without a new best after which the other has its turns although the clock leads


class Portfolio:
    """`members`: the clock's first, perhaps alone. What one has proposed no other proposes again."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self.members: tuple[Strategy, ...] = (Unclocked(space, seed, None),)
        if has_clock(space):
            self.members = Auto(space, seed, model), *self.members
        self._of: dict[str, int] = {}  # who proposed a row
        self._best = np.inf
        self._leader = 0
        self._batches = 0
        self._since = 0  # trials since the last new best

    @property
    def batch(self) -> int | None:
        """The leader's."""
        wanted: int | None = getattr(self.members[self._leader], "batch", None)
        return wanted

    @property
    def ahead(self) -> bool:
        """The leader's."""
        return bool(getattr(self.members[self._leader], "ahead", False))

    def propose(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        first = self._next()
        order = [first, *(m for m in range(len(self.members)) if m != first)]
        while order and len(found) < n:
            wanted = n - len(found)
            given = self.members[order[0]].propose(wanted)
            new = [c for c in given if c.key not in self._of]
            self._of.update((c.key, order[0]) for c in new)
            found += new
            if len(given) < wanted:
                order.pop(0)  # it has no more; what others have left is soon found
        return found

    def observe(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            owner = self._of.setdefault(trial.key, 0)
            cost = trial.measurement.cost if trial.measurement.ok else None
            self._since += 1
            if cost is not None and cost < self._best:
                self._best, self._leader, self._since = cost, owner, 0
        for member in self.members:
            member.observe(trials)

    def _next(self) -> int:
        """Who has this batch. The other is asked once early, then while the clock's stands still; where it leads, the
        clock has turns all the time."""
        self._batches += 1
        if len(self.members) < 2 or self._batches <= _BEFORE:
            return 0
        turn = self._batches % _EVERY == 0
        if self._leader:
            return 0 if turn else 1
        return 1 if self._batches == _BEFORE + 1 or (turn and self._since >= _PATIENCE) else 0
