"""Every built-in strategy against the conformance suite, and what each adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conformance.strategy import StrategyConformance, play, space
from conformance.synthetic import FakePlan, SyntheticDevice, clock, hidden_s, make_plan, record, tiny_plan
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plug_ins import PlugIn

from autosched.costmodel import cost_model
from autosched.device.protocol import Build
from autosched.errors import UnknownNameError
from autosched.search import SearchSpace, Strategy, open_study, run, strategies, strategy
from autosched.search.space.rows import Rows
from autosched.search.space.scores import Scores, settle
from autosched.search.strategy.memory import TrialHistory, draw
from autosched.search.strategy.portfolio import Portfolio
from autosched.store.records import Measurement
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Step


class TestRandom(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("random", space, seed)


class TestClock(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("clock", space, seed)


class TestEvolutionary(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("evolutionary", space, seed)


class TestEvolutionaryWithModel(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("evolutionary", space, seed, cost_model("xgb", seed))


class TestAuto(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("auto", space, seed, cost_model("xgb", seed))


class TestAutoWithoutModel(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("auto", space, seed)


class _Named(StrategyConformance):
    """A strategy of a subclass's name, without a model."""

    name = ""

    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy(self.name, space, seed)


class TestAnnealing(_Named):
    name = "annealing"


class TestBayesian(_Named):
    name = "bayesian"


class TestBeam(_Named):
    name = "beam"


class TestConstrained(_Named):
    name = "constrained"


class TestGenetic(_Named):
    name = "genetic"


class TestILS(_Named):
    name = "ils"


class TestConstrainedWithModel(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("constrained", space, seed, cost_model("xgb", seed))


class TestBeamWithModel(StrategyConformance):
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        return strategy("beam", space, seed, cost_model("xgb", seed))


def test_names() -> None:
    built_in = "annealing auto bayesian beam clock constrained draft evolutionary genetic ils random"
    assert strategies() == built_in.split()
    with pytest.raises(UnknownNameError, match="did you mean 'evolutionary'"):
        strategy("evolution", SearchSpace([], clock))


def test_plug_ins_are_found_by_name(plug_in: PlugIn) -> None:
    class Given:
        def __init__(self, *given: object) -> None:
            self.given = given
            self.propose = self.observe = self.fit = self.predict = lambda *args: None

    plug_in("autosched.strategies", Given)
    plug_in("autosched.cost_models", Given)
    space = SearchSpace([], clock)
    assert strategy("mine", space, 3, None).strategy.given == (space, 3, None)  # type: ignore[attr-defined]
    assert cost_model("mine", 3, 1).model.given == (3, 1)  # type: ignore[attr-defined]
    assert "mine" in strategies()


def test_clock_proposes_in_the_order_of_the_clock() -> None:
    space = SearchSpace([make_plan("a", tiles=2), make_plan("b", 1.1, tiles=3)], clock)
    everything = space.locate(np.arange(space.rows))
    proposed = [c.analytic_s for _ in range(3) for c in strategy("clock", space).propose(100)][:100]
    assert np.allclose(proposed, np.sort(space.analytic(everything))[:100])


def test_clock_reaches_the_hopeless_plans_last() -> None:
    space = SearchSpace([tiny_plan("good"), make_plan("bad", 1e4, tiles=1)], clock)
    assert [space.plans[n].plan.name for n in space.plausible] == ["good"]
    chooser = strategy("clock", space)
    names = [c.plan.name for c in chooser.propose(7)]
    assert names == ["good"] * 7
    assert len(chooser.propose(space.rows)) == space.rows - 7


def test_random_is_uniform_over_the_union() -> None:
    """Each of the 14 rows comes first about equally often (chi square, p = 0.001)."""
    space = SearchSpace([tiny_plan("x"), tiny_plan("y")], clock)
    counts: dict[str, int] = {}
    for seed in range(1400):
        key = strategy("random", space, seed).propose(1)[0].key
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 14
    assert sum((n - 100) ** 2 / 100 for n in counts.values()) < 34.5


class Unlike(SyntheticDevice):
    """Its times have little to do with what the clock says of a row."""

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        right = super().measure(build, repeats)
        return replace(right, time_s=(right.time_s or 0.0) * np.exp(0.7 * np.sin(1e3 * build.candidate.row)))


def test_auto_tries_each_plausible_plan_early_where_the_clock_is_wrong() -> None:
    plans = [make_plan(f"p{i}", 1 + 0.2 * i, tiles=3) for i in range(6)] + [make_plan("hopeless", 100.0)]
    space = SearchSpace(plans, clock)
    done = play(strategy("auto", space, 0, cost_model("xgb")), 3, 8, Unlike())
    assert {t.plan for t in done} >= {f"p{i}" for i in range(6)}
    right = play(strategy("auto", space, 0, cost_model("xgb")), 3, 8)
    assert {t.plan for t in right} < {t.plan for t in done}, "where it is right, its order comes first"
    assert sum(t.plan == "hopeless" for t in done) <= 2


def test_the_picks_of_a_batch_differ() -> None:
    space = SearchSpace([make_plan("a")], clock)
    auto = strategy("auto", space, 0, cost_model("xgb"))
    first = play(auto, 2, 8)
    assert len({t.row for t in first}) == 16, "the first batches spread (test_search_spread)"
    batch = auto.propose(8)
    rows = space.decisions(Rows.of(0, [c.row for c in batch]))
    apart = np.count_nonzero(rows[:, None] != rows[None, :], axis=2) + 9 * np.eye(8, dtype=int)
    assert apart.min() >= 2


@pytest.mark.slow
def test_learning_beats_the_clock_and_the_clock_beats_nothing() -> None:
    """On average over seeds, with the same 32 trials, on a device whose cost the clock only resembles."""
    space = SearchSpace([make_plan("a", tiles=6), make_plan("b", 1.3, tiles=5), make_plan("c", 8.0, tiles=5)], clock)
    best = min(float(hidden_s(e.plan, e.plan.space.values(e.ids)).min()) for e in space.plans)

    def reached(name: str, seed: int) -> float:
        study = open_study(record(seed=seed), space, strategy_name=name)
        found = run(study, SyntheticDevice(seed=seed), 32, final_rounds=0).best
        assert found is not None
        plan = found.candidate.plan
        return best / float(hidden_s(plan, plan.space.values([found.trial.row]))[0])

    score = {name: mean(reached(name, seed) for seed in range(8)) for name in ("random", "clock", "auto")}
    assert score["auto"] > 0.9
    assert score["auto"] >= max(score.values())
    assert reached("clock", 0) > 0.3  # its favourites are what the device punishes; the next test is about ranking


def test_the_clock_ranks_better_than_chance() -> None:
    space = SearchSpace([make_plan("a", tiles=6), make_plan("b", 1.3, tiles=5)], clock)

    def middle(name: str, seed: int) -> float:
        done = play(strategy(name, space, seed), 1, 16, SyntheticDevice(seed=seed))
        return float(np.median([t.measurement.time_s for t in done]))

    assert mean(middle("clock", s) for s in range(6)) < mean(middle("random", s) for s in range(6))


# The space under them


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4).map(lambda i: i << 40)), max_size=30))
def test_distinct_rows_stay_at_their_first_places(pairs: list[tuple[int, int]]) -> None:
    plan, ids = (np.array([p[k] for p in pairs], kind) for k, kind in enumerate((np.int32, np.int64)))
    found = Rows(plan, ids).distinct()
    assert list(zip(found.plan.tolist(), found.ids.tolist(), strict=True)) == list(dict.fromkeys(pairs))


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), n=st.integers(0, 20), rounds=st.integers(1, 4))
def test_draws_are_new_and_distinct(seed: int, n: int, rounds: int) -> None:
    space = SearchSpace([tiny_plan("x"), tiny_plan("y"), tiny_plan("z")], clock)
    memory = TrialHistory(space)
    taken: set[tuple[int, int]] = set()
    for _ in range(rounds):
        rows = draw(space, memory, n, np.random.default_rng(seed))
        pairs = set(zip(rows.plan.tolist(), rows.ids.tolist(), strict=True))
        assert len(pairs) == len(rows) == min(n, 21 - len(taken))
        assert not pairs & taken
        taken |= pairs
        memory.take(rows)


@settings(max_examples=20, deadline=None)
@given(k=st.integers(1, 4000), seed=st.integers(0, 5))
def test_the_best_rows_are_those_of_a_full_sort(k: int, seed: int) -> None:
    speeds = np.random.default_rng(seed).uniform(1, 3, 3)
    space = SearchSpace([make_plan(f"p{i}", float(s), tiles=2) for i, s in enumerate(speeds)], clock)
    rows, seconds = space.best(k)
    everything = space.locate(np.arange(space.rows))
    assert np.array_equal(seconds, np.sort(space.analytic(everything))[:k])
    assert np.array_equal(seconds, space.analytic(rows))
    assert len(rows.distinct()) == len(rows) == min(k, space.rows)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block", [1000, 1 << 16])
def test_threads_and_blocks_do_not_change_the_scores(threads: int, block: int) -> None:
    def seconds(plan: FakePlan, ids: Any) -> Any:
        return clock(plan, plan.space.values(ids))["total"].astype(np.float32)

    plans = [make_plan("a"), make_plan("b", 2.0)]
    every = [Scores(p.space.enumerate().ids, partial(seconds, p), block=block) for p in plans]
    settle(every, np.inf, threads)
    for plan, scores in zip(plans, every, strict=True):
        assert np.array_equal(scores.everything(), seconds(plan, scores.ids))


def test_a_clock_that_fails_leaves_no_half_scores() -> None:
    space = SearchSpace([make_plan("a")], clock)
    good, calls = space._clock, []

    def broken(plan: object, values: object) -> object:
        calls.append(1)
        raise RuntimeError("no")

    space._clock = broken
    with pytest.raises(RuntimeError):
        space.analytic_of_plan(0)
    space._clock = good
    assert space.analytic_of_plan(0).min() > 0


def test_a_space_above_the_limit_is_sampled() -> None:
    plan = make_plan("a")
    space = SearchSpace([plan], clock, limit=500, seed=3)
    [entry] = space.plans
    assert (len(entry.ids), entry.complete) == (500, False)
    assert plan.space.legal(entry.ids).all()
    assert len(set(entry.ids.tolist())) == 500
    assert np.array_equal(entry.ids, SearchSpace([plan], clock, limit=500, seed=3).plans[0].ids)
    done = play(strategy("auto", space, 0, cost_model("xgb")), 3, 8)
    assert len({t.key for t in done}) == 24


def test_counts_of_a_union() -> None:
    space = SearchSpace([tiny_plan("x"), tiny_plan("y")], clock)
    assert (space.rows, space.rows_in_all, space.rejected) == (14, 16, {"registers": 2})


def test_a_plan_is_not_given_up_for_a_regular_pattern_in_its_rows() -> None:
    """The last decision is terrible at all but one of its values; probing must not meet the bad ones only."""
    bad = Decision("bad", (1, 2, 3, 4, 5, 6, 7, 8))
    plans = [
        FakePlan(name, Space(name, [Step("s", (Decision("a", tuple(range(4096))), bad))]), speed)
        for name, speed in (("first", 1.0), ("second", 0.99))
    ]

    def steep(plan: FakePlan, values: Mapping[str, npt.NDArray[np.int64]]) -> dict[str, npt.NDArray[np.float64]]:
        return {"total": plan.speed * np.where(values["bad"] == 8, 1e-3, 1.0) * (1 + values["a"] / 4096)}

    space = SearchSpace(plans, steep)
    assert [space.plans[n].plan.name for n in space.plausible] == ["second", "first"]
    assert space.best(1)[1][0] == np.float32(0.99e-3)


def test_the_portfolio_is_led_by_what_suits_the_space() -> None:
    ranked = Portfolio(space(), 0, None)
    same = SearchSpace([make_plan("a", tiles=3)], lambda plan, values: {"total": np.ones(len(values["order"]))})
    flat = Portfolio(same, 0, None)
    assert [type(p.members[0]).__name__ for p in (ranked, flat)] == ["Auto", "Unclocked"]
