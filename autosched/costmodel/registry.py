"""Cost models by name: the built-in ones, and those that installed packages offer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import entry_points
from threading import Thread

from autosched.costmodel.learned.checked import CheckedModel
from autosched.costmodel.learned.forest import ForestModel
from autosched.costmodel.learned.gaussian import GaussianModel
from autosched.costmodel.learned.learned import AnalyticModel, ResidualModel
from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.random_model import RandomModel
from autosched.costmodel.learned.ranking import RankingModel
from autosched.costmodel.learned.throughput import ThroughputModel
from autosched.costmodel.protocol import CostModel
from autosched.errors import AutoschedError, PluginError, UnknownNameError, check_name

GROUP = "autosched.cost_models"
Factory = Callable[[int, int], CostModel]

_BUILT_IN: dict[str, Factory] = {
    "analytic": lambda seed, threads: AnalyticModel(),
    "forest": ForestModel,
    "gp": GaussianModel,
    "random": lambda seed, threads: RandomModel(seed),
    "rank": RankingModel,
    "throughput": lambda seed, threads: ThroughputModel(seed),
    "xgb": lambda seed, threads: ResidualModel(seed, threads),
}


_LEARNER = {
    **dict.fromkeys(("xgb", "rank", "throughput"), "xgboost"),
    "forest": "sklearn.ensemble",
    "gp": "sklearn.gaussian_process",
}


def load_soon(name: str) -> None:
    """Begin to load what a model learns with, in a thread of its own: it takes a second, and is wanted only once the
    first candidates are measured. What cannot be loaded is reported there."""

    def begin() -> None:
        with suppress(Exception):  # `load` raises it again for whoever needs the model; the process may be ending, too
            load(_LEARNER[name])

    if name in _LEARNER:
        Thread(target=begin, name=f"load {_LEARNER[name]}").start()


def cost_models() -> list[str]:
    """The names that `cost_model` knows."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def cost_model(name: str, seed: int = 0, threads: int = 2) -> CostModel:
    """A new model. A plug-in is an entry point in `autosched.cost_models`, called with (seed, threads).

    Raises UnknownNameError, and PluginError for an entry point that is none."""
    check_name("cost model", name)
    if name in _BUILT_IN:
        return _BUILT_IN[name](seed, threads)
    for point in entry_points(group=GROUP):
        if point.name == name:
            try:
                model: CostModel = point.load()(seed, threads)
            except AutoschedError:
                raise
            except Exception as error:
                raise PluginError(f"the cost model {name!r} does not load: {type(error).__name__}: {error}") from error
            return CheckedModel(name, model)
    raise UnknownNameError("cost model", name, cost_models())
