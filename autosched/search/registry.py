"""Strategies by name: the built-in ones, and those that installed packages offer."""

from __future__ import annotations

from importlib.metadata import entry_points

from autosched.costmodel.protocol import CostModel
from autosched.errors import AutoschedError, PluginError, UnknownNameError
from autosched.search.external.kernel_tuner_bridge import MODULES
from autosched.search.external.kernel_tuner_bridge import factory as bridged
from autosched.search.external.optuna_sampler import SAMPLERS
from autosched.search.external.optuna_sampler import factory as sampler
from autosched.search.protocol import Factory, Strategy
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.annealing import Annealing
from autosched.search.strategy.bayesian import Bayesian
from autosched.search.strategy.beam import Beam
from autosched.search.strategy.checked import CheckedStrategy
from autosched.search.strategy.constrained import Constrained
from autosched.search.strategy.evolutionary import Evolutionary
from autosched.search.strategy.genetic import Genetic
from autosched.search.strategy.ils import GreedyILS
from autosched.search.strategy.model_guided import Auto
from autosched.search.strategy.portfolio import Portfolio
from autosched.search.strategy.simple import ByClock, Random

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
_EXTRAS: dict[str, Factory] = {**{n: bridged(n) for n in MODULES}, **{n: sampler(n) for n in SAMPLERS}}
"""Strategies of other packages, which may not be installed."""
_NEEDS_CLOCK = ("clock",)


def strategies(extras: bool = False) -> list[str]:
    """The names that `strategy` knows; with `extras` also those that need a package of their own."""
    return sorted({*_BUILT_IN, *(_EXTRAS if extras else ()), *(p.name for p in entry_points(group=GROUP))})


def needs_clock(name: str) -> bool:
    """Whether the strategy can do nothing in a space without a clock."""
    return name in _NEEDS_CLOCK


def strategy(name: str, space: SearchSpace, seed: int = 0, model: CostModel | None = None) -> Strategy:
    """A new strategy over the space. Raises UnknownNameError, MissingError for one whose package is not here, and
    PluginError for an entry point that is none."""
    known = _BUILT_IN | _EXTRAS
    if name in known:
        return known[name](space, seed, model)
    for point in entry_points(group=GROUP):
        if point.name == name:
            try:
                made: Strategy = point.load()(space, seed, model)
            except AutoschedError:
                raise
            except Exception as error:
                raise PluginError(f"the strategy {name!r} does not load: {type(error).__name__}: {error}") from error
            return CheckedStrategy(name, made, space)
    raise UnknownNameError("strategy", name, strategies(extras=True))
