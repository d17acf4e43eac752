"""Cost models that experiments are given as classes, as strategies are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.paths import TESTS

import autosched
from autosched.costmodel.protocol import Prediction
from autosched.errors import PluginError, UnknownNameError, UsageError

FILE = TESTS / "data" / "replay_depthwise.json.gz"
asked: list[int] = []


class ByHeart:
    """Says the clock; notes how many trials it was told of."""

    def __init__(self, seed: int, threads: int) -> None:
        asked.append(0)

    def fit(self, samples: Any) -> None:
        asked[-1] = len(samples.time_s)

    def predict(self, features: Any, analytic_s: Any) -> Prediction:
        rows = len(analytic_s)
        return Prediction(np.log(np.asarray(analytic_s, np.float64)), np.full(rows, 0.1), np.zeros(rows))


class Needy(ByHeart):
    def __init__(self) -> None: ...


def test_a_search_asks_a_model_of_ones_own() -> None:
    asked.clear()
    found = autosched.simulate(FILE, ["evolutionary", "evolutionary:random"], 24, 1, cost_model=ByHeart)
    assert found.strategies == ("evolutionary", "evolutionary:random")
    assert len(asked) == 1
    assert asked[0] >= 8


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        (Needy, PluginError, "'Needy' is at fault: making it raised TypeError"),
        ("gq", UnknownNameError, "did you mean 'gp'"),
        (3, UsageError, "the cost model is given by name"),
    ],
)
def test_what_is_no_model(model: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        autosched.simulate(FILE, ["evolutionary"], 16, 1, cost_model=model)


def test_processes_take_names_alone() -> None:
    with pytest.raises(UsageError, match="only cost models with a name"):
        autosched.simulate(FILE, ["evolutionary"], 16, 1, cost_model=ByHeart, jobs=2)
