"""`Strategy`: which candidates to measure next; the built-in ones by name, and those that packages offer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Protocol

from autosched.costmodel.protocol import CostModel
from autosched.errors import UnknownNameError
from autosched.search.space import SearchSpace
from autosched.store.records import Trial
from autosched.tiling.schedule import Candidate

GROUP = "autosched.strategies"


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


def strategies() -> list[str]:
    """The names that `strategy` knows."""
    return sorted({*_built_in(), *(point.name for point in entry_points(group=GROUP))})


def strategy(name: str, space: SearchSpace, seed: int = 0, model: CostModel | None = None) -> Strategy:
    """A new strategy over the space. Raises UnknownNameError."""
    built_in = _built_in()
    if name in built_in:
        return built_in[name](space, seed, model)
    for point in entry_points(group=GROUP):
        if point.name == name:
            made: Strategy = point.load()(space, seed, model)
            return made
    raise UnknownNameError("strategy", name, strategies())


def _built_in() -> dict[str, Factory]:
    from autosched.search.auto import Auto
    from autosched.search.evolutionary import Evolutionary
    from autosched.search.simple import ByClock, Random

    return {"auto": Auto, "clock": ByClock, "evolutionary": Evolutionary, "random": Random}
