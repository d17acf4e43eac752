"""What the clock knows of vectors whose elements lie apart in memory, and of those that an axis does not fill: pairs of
schedules of products and sums that were measured whole (`benchmarks/recorded/complete`, Zen 5)."""

from functools import cache

import numpy as np
import pytest

from autosched.search.evaluate.recorder import rescored
from autosched.store.recorded_space import RecordedPlan
from autosched.store.replay_file import read_replay
from benchmarks.record import FOLDER

LONG_SUM, SUMS = "gemm_f32_4x4x4096", "row_norms_200x77"


@cache
def plans(name: str) -> tuple[RecordedPlan, ...]:
    """With what today's clock says of their rows."""
    today, lost = rescored(read_replay(FOLDER / "complete" / f"{name}.json.gz"))
    assert lost == 0
    return today.plans


def scalar(name: str) -> RecordedPlan:
    """The plan without instructions."""
    return next(plan for plan in plans(name) if plan.name == "scalar")


def row(plan: RecordedPlan, **chosen: int) -> int:
    fits = np.ones(len(plan.indices), np.bool_)
    for place, decision in enumerate(plan.decisions):
        if decision.name in chosen:
            fits &= plan.indices[:, place] == decision.domain.index(chosen[decision.name])
    (found,) = np.flatnonzero(fits)
    return int(found)


def ratio(plan: RecordedPlan, one: dict[str, int], other: dict[str, int]) -> tuple[float, float]:
    """How many times as long the first takes: by the clock, and as measured."""
    first, second = row(plan, **one), row(plan, **other)
    clock, time = plan.terms["total"], plan.time_s
    return float(clock[first] / clock[second]), float(time[first] / time[second])


@pytest.mark.parametrize("wide", [8, 16, 32])
def test_a_vector_is_no_faster_than_the_elements_of_its_axis(wide: int) -> None:
    """Four results lie side by side: wider vectors have no more to do."""
    one = {"lanes": 0, "unroll": 1, "rows": 1, "block": 0}
    clock, time = ratio(scalar(LONG_SUM), {**one, "vector": wide}, {**one, "vector": 4})
    assert 0.9 < time < 1.1
    assert clock == pytest.approx(time, rel=0.15)


@pytest.mark.parametrize("rows", [1, 4])
def test_columns_of_a_narrow_matrix_come_out_of_whole_vectors(rows: int) -> None:
    """Elements 16 bytes apart do not wait for a line each: 3.5 us with all four columns at once, 6.8 with one."""
    plan = scalar(LONG_SUM)
    at = row(plan, vector=16, unroll=1, lanes=1, rows=rows, block=0)
    assert plan.terms["total"][at] == pytest.approx(plan.time_s[at], rel=0.25)


def test_elements_a_line_apart_wait_for_their_lines() -> None:
    plan = scalar(SUMS)
    clock, time = ratio(plan, *({"vector": 16, "unroll": 1, "lanes": n, "rows": 1, "block": 0} for n in (0, 1)))
    assert time > 3
    assert clock > 3


def test_lanes_are_combined_beside_the_next_row() -> None:
    """Sums of 77 elements: the whole space's fastest takes 0.33 us, 6.7 cycles a row."""
    plan = scalar(SUMS)
    at = row(plan, vector=16, unroll=1, lanes=1, rows=2, block=0)
    assert plan.terms["total"][at] < 3 * plan.time_s[at]


def test_the_fastest_of_all_plans_is_among_the_first() -> None:
    """The clock put it 27 times behind, and searches that follow it never came there."""
    clock = np.concatenate([plan.terms["total"] for plan in plans(LONG_SUM)])
    times = np.concatenate([plan.time_s for plan in plans(LONG_SUM)])
    first = np.argsort(clock, kind="stable")[:32]
    assert times[first].min() == times.min()
