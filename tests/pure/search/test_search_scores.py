"""Rows that a lower bound rules out are not scored: none of them may be among the best."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import autosched
from autosched.costmodel.analytic.clock import clock, floors, leasts, parts, run_length
from autosched.costmodel.analytic.limits import limit
from autosched.logic import Var
from autosched.search.request import TuneRequest
from autosched.search.space.scores import Scores, settle
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.space import Space
from autosched.tiling.space.table import tabulate
from autosched.tiling.step import Decision, Rule, Step

PROGRAMS = {
    "bytes": ("matmul", {"m": 96, "n": 80, "k": 72, "a": "s8", "b": "s8", "acc": "s32"}, "x86-avx512", 1),
    "nothing packed": ("matmul", {"m": 64, "n": 96, "k": 48, "packed": False}, "x86-avx2", 2),
    "large": ("matmul", {"m": 16, "n": 4096, "k": 2048, "packed": False}, "x86-avx512", 1),
    "border": ("conv2d", {"h": 9, "w": 9, "ci": 8, "co": 32, "t": "f32"}, "x86-avx512", 1),
    "rows": ("softmax", {"m": 24, "n": 96}, "x86-avx512", 2),
}


@cache
def planned(name: str) -> tuple[Plan, ...]:
    workload, sizes, target, threads = PROGRAMS[name]
    packed = sizes.pop("packed", True)
    program = autosched.workload(workload, **sizes)
    if not packed:
        program = autosched.parse(str(program).replace("const[", "").replace("]]", "]"))
    request = TuneRequest(program, autosched.target(target), threads=threads)
    return tuple(plans_of(request)[1])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bounds_lie_below_the_clock(name: str) -> None:
    rng = np.random.default_rng(0)
    for plan in planned(name):
        ids = np.sort(plan.space.sample(500, rng))
        total = clock(plan, plan.space.values(ids))["total"]
        tables = [tabulate(plan.space, floor) for floor in floors(plan)]
        least = sum((t.look_up(ids) for t in tables if t is not None), start=np.zeros(len(ids)))
        assert np.all(least <= total * (1 + 1e-9)), plan.name


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_moves_adds_to_a_floor_and_stays_below_the_time(name: str) -> None:
    rng = np.random.default_rng(1)
    for plan in planned(name):
        values = plan.space.values(np.sort(plan.space.sample(500, rng)))
        for floor, least, part in zip(floors(plan), leasts(plan), parts(plan), strict=True):
            if least is None:
                continue
            known, seconds = floor(values), part(values) * (1 + 1e-9)
            for share in (1.0, 0.5, 0.0):  # a floor below the row's own says less, and nothing wrong
                said = least(values, share * known)
                assert np.all(share * known <= said), plan.name
                assert np.all(said <= seconds), plan.name
            if name == "large":
                assert np.mean(least(values, known) > 1.05 * known) > 0.5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_row_is_below_what_the_targets_figures_allow(name: str) -> None:
    """The bound of a space is of its own figures: below the clock, and not so far that it says nothing."""
    plans = planned(name)[:2]
    for plan in plans:
        ids = np.sort(plan.space.sample(500, np.random.default_rng(0)))
        values = plan.space.values(ids)
        assert np.all(limit(plan, values) <= clock(plan, values)["total"] * (1 + 1e-9))
    space = SearchSpace(plans, clock, run_length=run_length, floors=floors, least=limit, threads=1)
    bound, best = space.lower_bound_s, space.best(1)[1][0]
    assert bound is not None
    assert best / 5 < bound <= best


@pytest.mark.slow
def test_no_row_of_a_gpu_is_below_its_figures() -> None:
    program = autosched.workload("matmul", m=4096, n=4096, k=4096, a="bf16", b="bf16")
    request = TuneRequest(program, autosched.target("nvidia-h200"), only=("cuda/wgmma.m64n128k16.bf16.f32",))
    plan = plans_of(request)[1][0]
    values = plan.space.values(plan.space.sample(300, np.random.default_rng(0)))
    least, seconds = limit(plan, values), clock(plan, values)["total"]
    assert np.all(least <= seconds)
    assert least.max() > 2 * 4096**3 / 990e12


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["bytes", "border"])
@pytest.mark.parametrize("k", [1, 700, 20_000])
def test_no_row_that_is_better_is_left_out(name: str, k: int) -> None:
    plans = planned(name)[:3]
    quick = SearchSpace(plans, clock, run_length=run_length, floors=floors, threads=1)
    whole = SearchSpace(plans, clock, threads=1)
    assert quick.plausible == whole.plausible
    for plan in (None, 0):
        rows, seconds = quick.best(k, plan)
        _, wanted = whole.best(k, plan)
        assert np.array_equal(seconds, wanted)
        assert np.array_equal(quick.analytic(rows), seconds)
        assert len(rows.distinct()) == len(rows)
    if k < 1000:
        assert quick.scores(0).worked_out < whole.scores(0).worked_out / 4


@pytest.mark.slow
def test_plans_that_floors_rule_out_are_not_laid_out() -> None:
    plans = planned("border")
    space = SearchSpace(plans, clock, run_length=run_length, floors=floors, threads=1)
    whole = SearchSpace(plans, clock, run_length=run_length, threads=1)
    rows, seconds = space.best(5)
    assert 0 < sum("laid" in vars(entry) for entry in space.plans) < len(plans)
    wanted, slowest = whole.best(5)
    assert np.array_equal(rows.ids, wanted.ids)
    assert np.array_equal(rows.plan, wanted.plan)
    assert np.array_equal(seconds, slowest)
    assert not space.empty
    list(space.prepared())
    assert space.plausible == whole.plausible
    assert space.legal == whole.legal


def test_a_table_reads_what_it_is_asked_for() -> None:
    steps = [
        Step("tile", (Decision("a", (1, 2, 4)), Decision("b", (3, 5))), (), {"ab": Var("a") * Var("b")}),
        Step("more", (Decision("c", (0, 1)), Decision("d", tuple(range(1000))), Decision("e", (7, 9)))),
        Step("rule", (), (Rule("even", (Var("c") + Var("d")) % 2 <= 0, "odd"),)),
    ]
    space = Space("three", steps, {"k": 10})
    asked: list[str] = []

    def quantity(v: Mapping[str, Any]) -> Any:
        asked.extend(name for name in ("c", "nothing") if name in v)
        return np.where(v["ab"] > v["k"], v["e"], v["k"])

    table = tabulate(space, quantity)
    assert table is not None
    assert [space.decisions[p].name for p in table.positions] == ["a", "b", "e"]
    assert set(asked) == {"c"}
    ids = space.enumerate().ids
    assert np.array_equal(table.look_up(ids), quantity(space.values(ids)))
    assert tabulate(space, lambda v: v["d"], most=999) is None
    constant = tabulate(space, lambda v: v["k"])
    assert constant is not None
    assert constant.look_up(ids[:3]).tolist() == [10, 10, 10]
    with pytest.raises(KeyError):
        tabulate(space, lambda v: v["nothing"])


def test_rows_of_a_run_share_their_seconds() -> None:
    ids = np.array([0, 1, 3, 4, 9, 10, 11])
    asked: list[int] = []

    def seconds(heads: Any) -> Any:
        asked.extend(heads.tolist())
        return (10 - heads // 4).astype(np.float32)

    scores = Scores(ids, seconds, length=4)
    settle([scores], np.inf)
    assert asked == [0, 4, 9]
    assert scores.everything().tolist() == [10, 10, 10, 9, 8, 8, 8]
    assert [a.tolist() for a in scores.best(4)] == [[9, 10, 11, 4], [8, 8, 8, 9]]
    assert scores.count(9) == 4
    assert scores.best(9, limit_s=8.5)[0].tolist() == [9, 10, 11]
    settle([scores], np.inf)
    assert asked == [0, 4, 9]


def test_no_rows_have_no_best() -> None:
    scores = Scores(np.zeros(0, np.int64), lambda ids: np.zeros(len(ids), np.float32), length=4)
    settle([scores], np.inf)
    assert scores.best(3)[0].tolist() == scores.everything().tolist() == []
