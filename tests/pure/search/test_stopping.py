"""Ending a search before its budget: a time that is reached, a gain that is too small; the bound of a space."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record, tiny_plan

from autosched.cli.inputs import goal, share
from autosched.costmodel.registry import cost_model
from autosched.errors import UsageError
from autosched.ir import workload
from autosched.ir.work import operations
from autosched.search import Result, SearchSpace, Stopwatch, open_study, run
from autosched.search.space.scores import Scores
from autosched.search.stopping import Goals, Outlook, saved
from autosched.tiling.space.table import tabulate

SPACE = SearchSpace([make_plan("a", tiles=4), make_plan("b", 1.3, tiles=4)], clock)


def tune(goals: Goals, trials: int = 200, strategy: str = "clock", space: SearchSpace = SPACE) -> Result:
    device = SyntheticDevice()
    model = "xgb" if strategy == "draft" else "analytic"
    watch = Stopwatch(device.clock)
    study = open_study(record(), space, strategy_name=strategy, model_name=model, threads=1, watch=watch)
    outlook = Outlook(space, cost_model("xgb", 0, 1)) if goals.least_gain else None
    return run(study, device, trials, goals=goals, outlook=outlook)


def test_a_time_that_is_reached_ends_the_search() -> None:
    whole = tune(Goals(), 40, "random")
    assert whole.reason == "trials"
    assert whole.best is not None
    found = tune(Goals(time_s=whole.best.time_s * 1.2), 40, "random")
    assert found.reason == "reached"
    assert found.done < 40
    assert found.best is not None
    assert tune(Goals(time_s=1e-12), 9).reason == "trials"


@pytest.mark.slow
def test_too_small_a_gain_ends_the_search() -> None:
    found = tune(Goals(least_gain=0.05), strategy="draft")
    assert found.reason == "gain"
    assert 24 <= found.done < 200
    assert found.gain is not None
    assert found.gain < 0.05


def test_an_early_end_is_off_unless_asked_for() -> None:
    found = tune(Goals(), 60)
    assert (found.done, found.gain) == (60, None)


def test_a_space_that_is_measured_whole_has_nothing_left() -> None:
    space = SearchSpace([tiny_plan()], clock)
    assert tune(Goals(least_gain=0.01), space=space).reason == "exhausted"


def test_the_expected_saving_is_that_of_the_normal_law() -> None:
    rng = np.random.default_rng(0)
    for mean, sigma in ((-0.1, 0.05), (0.1, 0.1), (0.0, 0.3)):
        drawn = np.maximum(0.0, 1 - np.exp(rng.normal(mean, sigma, 400_000))).mean()
        assert saved(np.array([mean]), np.array([sigma]))[0] == pytest.approx(drawn, rel=0.05)
    assert saved(np.array([0.2]), np.array([0.0]))[0] == 0.0


def test_no_row_is_below_the_bound() -> None:
    plan = make_plan("a", tiles=4)
    floors = [lambda values: 1e-5 + 0 * values["unroll"], lambda values: 2e-9 * values["trips"]]
    space = SearchSpace([plan], lambda p, v: {"total": clock(p, v)["total"] + 1e-5}, floors=lambda p: floors)
    seconds = space.analytic_of_plan(0)
    assert space.lower_bound_s is not None
    assert 1e-5 < space.lower_bound_s <= seconds.min()
    tables = [tabulate(plan.space, floor) for floor in floors]
    scores = Scores(space.plans[0].ids, lambda ids: seconds, floors=[t for t in tables if t])
    assert 0 < scores.least(complete=False) <= scores.least(complete=True) <= seconds.min()


def test_without_floors_the_fastest_row_is_the_bound() -> None:
    fastest = min(SPACE.analytic_of_plan(n).min() for n in range(2))
    assert SPACE.lower_bound_s == pytest.approx(fastest)


def test_goals_are_read_or_refused() -> None:
    gemm = workload("matmul", m=64, n=64, k=64)
    assert goal("250us", gemm) == pytest.approx(250e-6)
    assert goal(" 1.5 ms", gemm) == pytest.approx(1.5e-3)
    assert goal("2G", gemm) == pytest.approx(operations(gemm) / 2e9)
    assert goal("2 GFLOPS", gemm) == goal("2G", gemm)
    assert (goal(None, gemm), share(None)) == (None, None)
    assert share("1%") == share("0.01") == 0.01
    for text in ("fast", "0us", "3", "-1ms", "2 lightyears"):
        with pytest.raises(UsageError, match="neither a time nor a speed"):
            goal(text, gemm)
    for text in ("0", "100%", "-1%", "much"):
        with pytest.raises(UsageError, match="between 0 and 1"):
            share(text)
    for figures in ({"time_s": 0.0}, {"time_s": float("nan")}, {"least_gain": 1.0}, {"least_gain": -0.1}):
        with pytest.raises(UsageError):
            Goals(**figures)
