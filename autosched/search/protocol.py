"""`Strategy`: which candidates to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autosched.costmodel.protocol import CostModel
from autosched.search.space.space import SearchSpace
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate


class Strategy(Protocol):
    """Proposes candidates and learns from trials. With one seed and the same observations it proposes the same."""

    def propose(self, n: int) -> list[Candidate]:
        """Up to `n` candidates, none of them proposed or observed before; fewer only when the space has no more."""
        ...

    def observe(self, trials: Sequence[Trial]) -> None:
        """Finished trials, failed ones too; also trials of an earlier run that this strategy did not propose."""
        ...


class Factory(Protocol):
    """What a strategy's class, or an entry point in `autosched.strategies`, is called with."""

    def __call__(self, space: SearchSpace, seed: int, model: CostModel | None) -> Strategy: ...
