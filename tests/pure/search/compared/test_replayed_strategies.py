"""Strategies on recorded spaces: the calculated baseline, performance, accounting of time, and what is refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from support.paths import TESTS

import autosched
from autosched.costmodel import CostModel
from autosched.errors import UsageError
from autosched.report.performance import scaled
from autosched.search import SearchSpace, Strategy, strategy
from autosched.search.evaluate.compare import contestants
from autosched.search.evaluate.landscape import Landscape
from autosched.search.evaluate.simulate import all_strategies, simulate
from autosched.store.exchanged import read_any
from autosched.store.measured import Measured
from autosched.store.records import Measurement

CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"


@pytest.mark.parametrize("failed", [0, 2])
def test_random_search_is_calculated_as_enumerated(failed: int) -> None:
    """Against the mean over all subsets of each size that hold a row that came out right."""
    times = [1.0, 2.0, 2.0, 5.0, 11.0]
    rows = [*times, *[np.inf] * failed]
    for k in range(1, len(rows) + 1):
        best = [min(chosen) for chosen in combinations(rows, k)]
        exact = float(np.mean([b for b in best if b < np.inf]))
        assert Landscape(np.array(times), failed).expected_s([k])[0] == pytest.approx(exact)
    assert Landscape(np.array(times)).expected_s([99])[0] == pytest.approx(1.0)


def test_the_cutoff_is_the_first_budget_that_is_near_enough() -> None:
    landscape = Landscape(np.arange(1.0, 2001.0))
    k = landscape.cutoff(0.9)
    goal = 1000.5 - 0.9 * 999.5
    assert landscape.expected_s([k])[0] <= goal < landscape.expected_s([k - 1])[0]


@pytest.mark.slow
def test_random_search_performs_at_zero() -> None:
    """Simulated random search against the calculated one: 0 within the interval of 100 runs."""
    table = autosched.simulate(CACHE, ["random"], trials=16)
    (summary,) = table.summary().strategies
    assert summary.performance is not None
    assert summary.performance.low < 0 < summary.performance.high
    assert summary.performance.high - summary.performance.low < 0.3


def test_scale() -> None:
    landscape = Landscape(np.array([1.0, 2.0, 4.0]))
    random_s = np.array([7 / 3, 4 / 3, 1.0])
    found = scaled(np.array([[np.inf, 4 / 3, 2.0], [1.0, 1.0, 1.0]]), random_s, landscape)
    np.testing.assert_allclose(found, [[(7 / 3 - 4) / (4 / 3), 0, 0], [1, 1, 1]])


@pytest.mark.slow
def test_every_strategy_searches_it() -> None:
    """Those with a model, which fit it after twelve trials, have two trials more; the quick ones have six."""
    recording = read_any(CACHE)
    names = all_strategies(recording)
    assert "clock" not in names
    assert {"auto", "bayesian", "ils", "random"} <= set(names)
    table = autosched.simulate(recording, "all", trials=14, repeats=1, cost_model="analytic")
    assert table.strategies == tuple(names)
    assert table.best_s == recording.best_s
    quick = sorted(set(names) - {"auto", "bayesian"})
    longer = autosched.simulate(recording, quick, trials=18, repeats=1, cost_model="analytic")
    for name in names:
        assert len({r.row for r in table.rows if r.strategy == name}) == 14
        assert 0 <= (longer if name in quick else table).regrets[name][0, -1] < 0.5


def test_seeds_are_paired_and_answers_repeat() -> None:
    runs = [autosched.simulate(CACHE, ["random", "ils"], trials=12, repeats=[3, 5]).rows for _ in range(2)]
    assert [r[:8] for r in runs[0]] == [r[:8] for r in runs[1]]
    assert {r.seed for r in runs[0]} == {3, 5}


@pytest.mark.slow
def test_processes_share_the_runs_and_change_nothing() -> None:
    """What was recorded costs nothing in time of its own here, so whole rows are compared, all but the seconds."""
    strategies, said = ["genetic", "ils"], []
    alone = autosched.simulate(CACHE, strategies, trials=12, repeats=[4, 2])
    shared = autosched.simulate(CACHE, strategies, trials=12, repeats=[4, 2], jobs=2, on_run=said.append)
    assert [r[:8] for r in shared.rows] == [r[:8] for r in alone.rows]
    assert [r.done for r in said] == [1, 2, 3, 4]
    assert {(r.strategy, r.seed) for r in said} == {(s, n) for s in strategies for n in (4, 2)}


def test_processes_refuse_what_one_refuses() -> None:
    with pytest.raises(UsageError, match="0 trials"):
        autosched.simulate(CACHE, ["random"], trials=0, repeats=1, jobs=2)
    with pytest.raises(UsageError, match="clock ranks by the clock"):
        autosched.simulate(CACHE, ["clock"], trials=5, repeats=1, jobs=2)
    with pytest.raises(UsageError, match="with a name"):
        autosched.simulate(CACHE, [strategy_factory], trials=5, repeats=1, jobs=2)
    with pytest.raises(UsageError, match="jobs is 0"):
        autosched.simulate(CACHE, ["random"], trials=5, repeats=1, jobs=0)


def strategy_factory(space: SearchSpace, seed: int, model: CostModel | None) -> Strategy:
    return strategy("random", space, seed, model)


def test_time_is_what_was_spent_when_it_was_recorded() -> None:
    recording = read_any(CACHE)
    cost = dict(zip(recording.plans[0].space().listed.tolist(), recording.plans[0].cost_s, strict=True))
    rows = simulate(recording, contestants(["random"]), 10, [0, 1], clock=lambda: 0.0).some()
    for seed in (0, 1):
        mine = [r for r in rows if r.seed == seed]
        assert [r.elapsed_s for r in mine] == pytest.approx(np.cumsum([cost[r.row] for r in mine]).tolist())


def test_performance_over_time_ends_when_random_search_would() -> None:
    table = autosched.simulate(CACHE, ["random", "genetic"], trials=16, repeats=4)
    assert table.performance is not None
    assert table.landscape is not None
    assert table.performance.moments_s[-1] == pytest.approx(16 * table.landscape.cost_s)
    assert table.performance.over_time["random"].shape == (4, len(table.performance.moments_s))
    assert table.performance.over_time["genetic"].max() <= 1


def test_without_costs_there_is_no_performance_over_time() -> None:
    pairs = [({"a": i}, Measurement("ok", 1.0 + i)) for i in range(30)]
    table = autosched.simulate(Measured.of("k", "d", pairs).recording(), ["random"], trials=5, repeats=3)
    assert table.performance is not None
    assert not len(table.performance.moments_s)
    assert table.summary().strategies[0].performance_of_time is None
    assert "over time" not in str(table)


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="clock ranks by the clock") as error:
        autosched.simulate(CACHE, ["clock"], trials=5, repeats=1)
    assert error.value.hint is not None
    assert "random" in error.value.hint
    with pytest.raises(UsageError, match="0 seeds"):
        autosched.simulate(CACHE, ["random"], trials=5, repeats=0)
    with pytest.raises(UsageError, match="0 trials"):
        autosched.simulate(CACHE, ["random"], trials=0, repeats=1)


def test_no_more_trials_than_rows() -> None:
    table = autosched.simulate(CACHE, ["random"], trials=10_000, repeats=1)
    assert table.trials == len(table.rows) == 90
