"""Cost models as experiments are given them: by name, or as a class that no package offers by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from autosched.costmodel.learned.checked import CheckedModel
from autosched.costmodel.protocol import CostModel
from autosched.costmodel.registry import cost_model, cost_models
from autosched.errors import AutoschedError, PluginError, UnknownNameError, check_name

ModelFactory: TypeAlias = Callable[[int, int], CostModel]
"""Called with (seed, threads), as the models of plug-ins are."""


def made_model(model: str | ModelFactory, seed: int, threads: int) -> CostModel:
    """A new model. Raises UnknownNameError, PluginError for a factory that raises, and (later) for a model of one that
    does not keep to its protocol."""
    if isinstance(model, str):
        return cost_model(model, seed, threads)
    try:
        return CheckedModel(name_of(model), model(seed, threads))
    except AutoschedError:
        raise
    except Exception as error:
        said = f"the cost model {name_of(model)!r} is at fault: making it raised {type(error).__name__}: {error}"
        raise PluginError(said, hint="it takes a seed and threads: docs/python.md#a-cost-model") from error


def known_model(model: str | ModelFactory) -> str | ModelFactory:
    """The same. Raises UnknownNameError for a name that nothing provides, UsageError for what is neither."""
    if callable(model):
        return model
    check_name("cost model", model)
    if model not in cost_models():
        raise UnknownNameError("cost model", model, cost_models())
    return model


def name_of(model: str | ModelFactory) -> str:
    return model if isinstance(model, str) else getattr(model, "__name__", type(model).__name__)
