"""Strategies by name: the built-in ones, and those that installed packages offer."""

from __future__ import annotations

from importlib.metadata import entry_points

from autosched.costmodel.protocol import CostModel
from autosched.errors import UnknownNameError
from autosched.search.auto import Auto
from autosched.search.evolutionary import Evolutionary
from autosched.search.protocol import Factory, Strategy
from autosched.search.simple import ByClock, Random
from autosched.search.space import SearchSpace

GROUP = "autosched.strategies"

_BUILT_IN: dict[str, Factory] = {"auto": Auto, "clock": ByClock, "evolutionary": Evolutionary, "random": Random}


def strategies() -> list[str]:
    """The names that `strategy` knows."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def strategy(name: str, space: SearchSpace, seed: int = 0, model: CostModel | None = None) -> Strategy:
    """A new strategy over the space. Raises UnknownNameError."""
    if name in _BUILT_IN:
        return _BUILT_IN[name](space, seed, model)
    for point in entry_points(group=GROUP):
        if point.name == name:
            made: Strategy = point.load()(space, seed, model)
            return made
    raise UnknownNameError("strategy", name, strategies())
