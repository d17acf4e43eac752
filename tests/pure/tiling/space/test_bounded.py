"""Staged joins that drop what a lower bound rules out: no row of less time may be among what they dropped."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.timed_spaces import timed_spaces, total_of

import autosched
from autosched.costmodel.analytic.clock import clock, floors, leasts, parts, run_length
from autosched.search.request import TuneRequest
from autosched.search.space.space import SearchSpace
from autosched.search.space.top_k import TopK
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.bounded import Bounded, Timed, timed
from autosched.tiling.space.independent_groups import IndependentGroups
from autosched.tiling.space.space import Space
from autosched.tiling.space.values import rows_of
from benchmarks.space_speed import TWO

SIZES = {"m": 64, "k": 48, "h": 96, "n": 64}
BOUNDS: dict[str, Any] = {"run_length": run_length, "floors": floors, "parts": parts, "leasts": leasts}
PROGRAMS = {
    "product": ("matmul", {"m": 96, "n": 80, "k": 72}, "x86-avx2", 4),
    "border": ("conv2d", {"h": 9, "w": 9, "ci": 8, "co": 32, "t": "f32"}, "x86-avx512", 1),
    "graphics": ("matmul", {"m": 64, "n": 64, "k": 32}, "nvidia-h200", 1),
}


def plans(name: str) -> list[Plan]:
    workload, sizes, target, threads = PROGRAMS[name]
    return plans_of(TuneRequest(autosched.workload(workload, **sizes), autosched.target(target), threads=threads))[1]


def bounded(plan: Plan, block: int = 1 << 14) -> Bounded:
    return Bounded(plan.space, timed(parts(plan), floors(plan), leasts(plan)), lambda ids: seconds(plan, ids), block)


def seconds(plan: Plan, ids: Any) -> Any:
    return np.asarray(clock(plan, plan.space.values(ids))["total"], np.float32)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_best_rows_are_those_of_a_full_sort(name: str) -> None:
    plan = min(plans(name), key=lambda p: abs(p.space.size - 10**6))
    legal = plan.space.enumerate().ids
    every = np.sort(seconds(plan, legal))
    for k in (1, 300, 5000, len(legal) + 5):
        found = bounded(plan).best(k)
        assert found.proved
        assert np.array_equal(found.seconds, every[:k])
        assert np.array_equal(seconds(plan, found.ids), found.seconds)
        assert len(np.unique(found.ids)) == len(found.ids)
    limit = float(every[40])
    assert np.array_equal(bounded(plan).best(10**6, limit).seconds, every[every <= limit])


def test_few_rows_are_timed_where_what_moves_is_known() -> None:
    """Floors leave out what moves between caches: by them alone most rows could be among the best."""
    program = autosched.workload("matmul", m=512, n=1024, k=1024)
    plan = plans_of(TuneRequest(program, autosched.target("x86-avx512")))[1][0]
    exact, counted, found = parts(plan)[0], [0, 0], []

    def counting(at: int, values: Any) -> Any:
        counted[at] += rows_of(values)
        return exact(values)

    for at, between in enumerate(((), leasts(plan))):
        some = timed([partial(counting, at)], floors(plan), between)
        found.append(Bounded(plan.space, some, lambda ids: seconds(plan, ids)).best(200).seconds)
    assert counted[1] < counted[0] / 3
    assert np.array_equal(*found)


def test_most_of_a_space_is_never_looked_at() -> None:
    plan = max(plans("product"), key=lambda p: p.space.size)
    search = bounded(plan, 1 << 12)
    search.best(10)
    assert search.looked_at < plan.space.size / 50


def test_parts_add_up_to_the_clock() -> None:
    program = autosched.parse(TWO, sizes=SIZES)
    plan = plans_of(TuneRequest(program, autosched.target("x86-avx512")))[1][0]
    ids = plan.space.sample(300, np.random.default_rng(0))
    values = plan.space.values(ids)
    assert len(parts(plan)) == 2
    assert np.allclose(sum(part(values) for part in parts(plan)), clock(plan, values)["total"], rtol=1e-12)


@pytest.mark.slow
def test_two_products_in_trillions_of_rows() -> None:
    """More legal rows than a list can hold: none of those drawn is better than what is found, nor is any neighbour."""
    plan = plans_of(TuneRequest(autosched.parse(TWO, sizes=SIZES), autosched.target("x86-avx512")))[1][0]
    space = SearchSpace([plan], clock, **BOUNDS, threads=1, limit=10**6)
    assert not space.plans[0].complete
    assert space.legal > 10**8 > space.rows
    rows, found = space.best(500)
    assert len(rows.distinct()) == 500
    assert plan.space.legal(rows.ids).all()
    assert np.array_equal(space.analytic(rows), found)
    assert (np.diff(found) >= 0).all()
    drawn = seconds(plan, plan.space.sample(20_000, np.random.default_rng(1)))
    assert np.count_nonzero(drawn < found[-1]) <= 500
    for row in rows.ids[:40].tolist():
        near = plan.space.neighbours(row)
        better = near[seconds(plan, near) < found[-1]]
        assert np.isin(better, rows.ids).all()


@pytest.mark.slow
def test_a_sampled_plan_has_the_best_rows_of_all() -> None:
    some = plans("border")[:3]
    whole = SearchSpace(some, clock, threads=1)
    sampled = SearchSpace(some, clock, **BOUNDS, threads=1, limit=2000)
    assert not any(entry.complete for entry in sampled.plans)
    assert sampled.legal == whole.rows
    assert sampled.rejected.keys() == whole.rejected.keys()
    assert sum(sampled.rejected.values()) == sum(whole.rejected.values())
    for k in (1, 700, 50):
        assert np.array_equal(sampled.best(k)[1], whole.best(k)[1])


def test_without_parts_a_sample_stands_for_a_plan() -> None:
    some = plans("border")[:1]
    space = SearchSpace(some, clock, floors=floors, threads=1, limit=2000)
    assert len(space.best(50)[0]) == 50


@pytest.mark.slow
@examples(80)
@given(timed_spaces(tied=True), st.integers(1, 40), st.sampled_from([1, 16, 1 << 12]))
def test_nothing_better_is_dropped(case: tuple[Space, list[Timed]], k: int, block: int) -> None:
    space, some = case
    total = total_of(space, some)

    wanted = np.sort(total(space.enumerate().ids))[:k]
    assert np.allclose(Bounded(space, some, total, block).best(k).seconds, wanted)


def test_what_was_found_before_answers_for_less() -> None:
    plan = plans("border")[0]
    parts_of_time = timed(parts(plan), floors(plan), leasts(plan))
    search = IndependentGroups(plan.space, parts_of_time, lambda ids: seconds(plan, ids))
    rows = TopK(search, at_least=1)
    many, seconds_of = rows.best(400)
    looked = search.looked_at
    assert np.array_equal(rows.best(30)[0], many[:30])
    assert np.array_equal(rows.best(900, float(seconds_of[10]))[1], seconds_of[seconds_of <= seconds_of[10]])
    assert search.looked_at == looked
    assert len(rows.best(500)[0]) == 500
    assert search.looked_at > looked
    others = TopK(IndependentGroups(plan.space, search._parts, lambda ids: seconds(plan, ids)), at_least=1)
    near = others.near(300, np.inf, 20, 1.1)
    assert np.array_equal(others.best(len(near.ids))[0], near.ids)
    assert np.array_equal(others.best(500)[1], rows.best(500)[1])


def test_a_search_that_ends_early_says_so() -> None:
    found = bounded(plans("border")[0]).best(50, most=1000)
    assert not found.proved
