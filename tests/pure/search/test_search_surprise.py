"""A clock that is wrong about all of its favourites alike is noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.strategy import play, trial
from conformance.synthetic import FakePlan, SyntheticDevice, clock, make_plan

from autosched.costmodel import cost_model
from autosched.device.protocol import Build
from autosched.search import SearchSpace, strategy
from autosched.search.strategy.memory import TrialHistory
from autosched.store.records import Measurement

TIMES_SLOWER = 36.0  # bytes read lane by lane, which the clock took for a vector load


def blind(plan: FakePlan, values: Any) -> dict[str, Any]:
    """The clock, which likes order 1 and prefetching best."""
    terms = clock(plan, values)
    liked = (np.asarray(values["order"]) == 1) & (np.asarray(values["prefetch"]) == 8)
    return terms | {"total": terms["total"] * np.where(liked, 0.5, 1.0)}


class Trap(SyntheticDevice):
    """What that clock likes best is far slower than it says."""

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        candidate = build.candidate
        values = candidate.plan.space.values([candidate.row])
        slow = int(values["order"][0]) == 1 and int(values["prefetch"][0]) == 8
        cost = float(clock(FakePlan("a", candidate.plan.space), values)["total"][0])
        return Measurement("ok", cost * (TIMES_SLOWER if slow else 1.0))


@pytest.mark.slow
def test_auto_leaves_favourites_that_are_all_as_slow() -> None:
    """Within 32 trials, with most seeds: how soon is a matter of places given to any row at all."""
    left = 0
    for seed in range(8):
        space = SearchSpace([make_plan("a")], blind)
        done = play(strategy("draft", space, seed, cost_model("xgb", seed)), 8, 4, Trap())
        costs = [t.measurement.cost or np.inf for t in done]
        left += min(costs[:8]) > 10 * min(costs)
    assert left >= 6


@pytest.mark.parametrize(("times", "noticed"), [(1.0, False), (3.0, False), (0.3, False), (40.0, True), (0.02, True)])
def test_a_machine_may_be_faster_or_slower_but_not_by_so_much(times: float, noticed: bool) -> None:
    space = SearchSpace([make_plan("a")], clock)
    memory = TrialHistory(space)
    rows = space.best(8)[0]
    seconds = np.asarray(space.analytic(rows), np.float64) * times
    told = [Measurement("ok", float(s)) for s in seconds]
    memory.observe([trial(i, c, m) for i, (c, m) in enumerate(zip(space.candidates(rows), told, strict=True))])
    assert (memory.surprise > 1.0) == noticed
    assert noticed or memory.surprise < 1e-3


def slower_for_b(plan: FakePlan, values: Any) -> dict[str, Any]:
    """The clock, which can just tell plan b from plan a."""
    terms = clock(FakePlan("a", plan.space), values)
    return terms | {"total": terms["total"] * (1.12 if plan.name == "b" else 1.0)}


class OtherWay(SyntheticDevice):
    """Plan b takes three quarters of what the clock says, plan a as much more."""

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        candidate = build.candidate
        values = candidate.plan.space.values([candidate.row])
        cost = float(slower_for_b(FakePlan(candidate.plan.name, candidate.plan.space), values)["total"][0])
        return Measurement("ok", cost * (0.75 if candidate.plan.name == "b" else 1.2))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_plans_that_the_clock_can_hardly_tell_apart_are_both_tried(seed: int) -> None:
    space = SearchSpace([make_plan("a"), make_plan("b")], slower_for_b)
    done = play(strategy("draft", space, seed, cost_model("xgb", seed)), 8, 4, OtherWay())
    assert "b" in [t.plan for t in done[:12]]
    assert min(done, key=lambda t: t.measurement.cost or np.inf).plan == "b"
