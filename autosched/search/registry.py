"""Strategies by name: the built-in ones, and those that installed packages offer."""

from __future__ import annotations

from importlib.metadata import entry_points

from autosched.costmodel.protocol import CostModel
from autosched.errors import UnknownNameError
from autosched.search.annealing import Annealing
from autosched.search.auto import Auto
from autosched.search.bayesian import Bayesian
from autosched.search.beam import Beam
from autosched.search.constrained import Constrained
from autosched.search.evolutionary import Evolutionary
from autosched.search.genetic import Genetic
from autosched.search.ils import GreedyILS
from autosched.search.portfolio import Portfolio
from autosched.search.protocol import Factory, Strategy
from autosched.search.simple import ByClock, Random
from autosched.search.space import SearchSpace

GROUP = "autosched.strategies"

_BUILT_IN: dict[str, Factory] = {
    "annealing": Annealing,
    "auto": Portfolio,
    "bayesian": Bayesian,
    "beam": Beam,
    "clock": ByClock,
    "constrained": Constrained,
    "draft": Auto,
    "evolutionary": Evolutionary,
    "genetic": Genetic,
    "ils": GreedyILS,
    "random": Random,
}
_NEEDS_CLOCK = ("clock",)


def strategies() -> list[str]:
    """The names that `strategy` knows."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def needs_clock(name: str) -> bool:
    """Whether the strategy can do nothing in a space without a clock."""
    return name in _NEEDS_CLOCK


def strategy(name: str, space: SearchSpace, seed: int = 0, model: CostModel | None = None) -> Strategy:
    """A new strategy over the space. Raises UnknownNameError."""
    if name in _BUILT_IN:
        return _BUILT_IN[name](space, seed, model)
    for point in entry_points(group=GROUP):
        if point.name == name:
            made: Strategy = point.load()(space, seed, model)
            return made
    raise UnknownNameError("strategy", name, strategies())
