"""Joules, and joules times seconds, as sums of parts: bounds hold, and the best rows are found without a list."""

from __future__ import annotations

import numpy as np
import pytest

import autosched
from autosched.costmodel import objective as objectives
from autosched.search.request import TuneRequest
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan
from benchmarks.space_speed import TWO

SIZES = {"m": 64, "k": 48, "h": 96, "n": 64}
AIMS = ("energy", "edp")


def two_products(sizes: dict[str, int]) -> Plan:
    return plans_of(TuneRequest(autosched.parse(TWO, sizes=sizes), autosched.target("amd-zen4")))[1][0]


def one_product(target: str) -> Plan:
    program = autosched.workload("matmul", m=96, n=80, k=64, a="bf16", b="bf16", acc="f32")
    found = plans_of(TuneRequest(program, autosched.target(target)))[1]
    return min(found, key=lambda p: abs(p.space.size - 10**6))


PLANS = {
    "CPU": lambda: one_product("amd-zen4"),
    "GPU": lambda: one_product("nvidia-h200"),
    "two parts": lambda: two_products({"m": 12, "k": 16, "h": 16, "n": 16}),
}


@pytest.mark.parametrize("objective", AIMS)
def test_parts_are_below_the_total_and_floors_below_parts(objective: str) -> None:
    plan = two_products(SIZES)
    values = plan.space.values(plan.space.sample(500, np.random.default_rng(0)))
    total = objectives.objective_clock(objective)(plan, values)["total"]
    exact = [part(values) for part in objectives.parts(objective)(plan)]
    floors = [floor(values) for floor in objectives.floors(objective)(plan)]
    assert len(exact) == len(floors) > 1
    for floor, part in zip(floors, exact, strict=True):
        assert (floor <= part * (1 + 1e-9)).all()
    added = sum(exact)
    assert (added <= total * (1 + 1e-9)).all()
    if objective == "energy":
        assert added == pytest.approx(total)
    else:
        assert (added > 0.5 * total).all(), "the products of parts with each other are bounded too"


@pytest.mark.slow
@pytest.mark.parametrize("objective", AIMS)
@pytest.mark.parametrize("name", PLANS)
def test_a_space_too_large_to_list_has_the_best_rows_of_all(name: str, objective: str) -> None:
    plan = PLANS[name]()
    clock = objectives.objective_clock(objective)
    whole = SearchSpace([plan], clock, threads=1)
    bounds = {"floors": objectives.floors(objective), "parts": objectives.parts(objective)}
    sampled = SearchSpace([plan], clock, threads=1, limit=1000, **bounds)
    assert whole.plans[0].complete
    assert not sampled.plans[0].complete
    for k in (1, 400):
        assert np.array_equal(sampled.best(k)[1], whole.best(k)[1])
