"""Strategies of Optuna and Kernel Tuner on our spaces: the same protocol, and what is said where they are missing."""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from conformance.strategy import StrategyConformance, play
from conformance.synthetic import clock, make_plan
from support.paths import TESTS

import autosched
from autosched.errors import MissingError, UnknownNameError, UsageError
from autosched.search import SearchSpace, Strategy, strategies, strategy
from autosched.search.evaluate.simulate import all_strategies
from autosched.search.external.kernel_tuner_bridge import KernelTuned, hypercube
from autosched.store.exchanged import read_any

needs_optuna = pytest.mark.skipif(find_spec("optuna") is None, reason="the extra optuna is not installed")
needs_tuner = pytest.mark.skipif(find_spec("kernel_tuner") is None, reason="the extra kernel-tuner is not installed")
CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"
TINY = [make_plan("a", tiles=2), make_plan("b", 1.2, tiles=2)]


@needs_optuna
class TestOptuna(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("optuna-tpe", space, seed)


@needs_tuner
class TestKernelTuner(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("kt-genetic", space, seed)


@needs_tuner
@pytest.mark.parametrize("name", [n for n in strategies(extras=True) if n.startswith("kt-")])
def test_each_searches_a_recorded_space(name: str) -> None:
    found = autosched.simulate(read_any(CACHE), [name], trials=24, repeats=1)
    assert len({row.trial for row in found.rows}) == 24


@needs_tuner
@pytest.mark.parametrize("name", [n for n in strategies(extras=True) if n.startswith("kt-")])
def test_a_seed_decides_each_run(name: str) -> None:
    """Kernel Tuner draws the first populations of differential evolution from a generator without a seed."""
    space = SearchSpace([make_plan("a", tiles=3), make_plan("b", 1.2, tiles=3)], clock)
    one, again = (play(strategy(name, space, 3), 20, 4) for _ in range(2))
    assert [t.key for t in one] == [t.key for t in again]


@needs_tuner
def test_points_of_a_hypercube_are_in_all_parts_of_each_dimension() -> None:
    found = hypercube(8, [8, 4, 1])
    assert sorted(found[:, 0].tolist()) == list(range(8))
    assert sorted(found[:, 1].tolist()) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert set(found[:, 2].tolist()) == {0}


@needs_tuner
def test_generators_of_others_are_left_alone() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002  # the generator in question
    play(strategy("kt-annealing", SearchSpace(TINY, clock), 3), 8, 1)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


@needs_tuner
def test_a_space_too_large_to_list_is_refused() -> None:
    with pytest.raises(UsageError, match="lists its space"):
        KernelTuned("kt-mls", SearchSpace([make_plan("a", tiles=8)], clock), 0, most=1000)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, package in (("optuna-tpe", "optuna"), ("kt-pso", "kernel_tuner")):
        for module in [m for m in sys.modules if m.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingError, match=f"{name} needs {package}") as caught:
            strategy(name, SearchSpace(TINY, clock))
        assert "pip install 'autosched[" in str(caught.value)


def test_they_are_known_and_run_only_when_named() -> None:
    assert {"optuna-tpe", "kt-greedy-ils"} <= set(strategies(extras=True)) - set(strategies())
    assert "optuna-tpe" not in all_strategies(read_any(CACHE))
    with pytest.raises(UnknownNameError, match="did you mean 'optuna-tpe'"):
        strategy("optuna-tpee", SearchSpace(TINY, clock))


@needs_tuner
def test_one_that_fails_is_started_again() -> None:
    def failing(space: Any, runner: Any, options: Any) -> None:
        runner.run([space.get_random_sample(1)[0]], options)
        raise TypeError("no neighbour")

    def hopeless(space: Any, runner: Any, options: Any) -> None:
        raise TypeError("no neighbour")

    made: Any = strategy("kt-mls", SearchSpace(TINY, clock), 0)
    made._tune = failing
    assert len({t.key for t in play(made, 4, 1)}) == 4
    made = strategy("kt-mls", SearchSpace(TINY, clock), 0)
    made._tune = hopeless
    with pytest.raises(UsageError, match="fails on this space: TypeError"):
        made.propose(1)
