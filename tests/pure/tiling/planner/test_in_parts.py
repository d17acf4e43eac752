"""Plans in parts: where a pass has fewer tiles of rows than workers, as many parts as these; else a reason."""

from __future__ import annotations

import pytest
from support.plans import machine
from support.programs.in_parts import LOG_SUM_EXP

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import planned
from autosched.tiling.planner.families import PARTS, family_of, not_planned
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.variants.in_parts import LEAST, parts_of

DECODE = {"b": 1, "h": 1, "l": 2048, "d": 32, "group": 1}


def in_parts(program: Program, threads: int, target: Target | None = None) -> list[Plan]:
    request = TuneRequest(program, target or machine(), threads=threads)
    return [p for p in planned(request).every if family_of(p) == PARTS]


def reason(program: Program, threads: int, numerics: str = "rescaled") -> str | None:
    return dict(not_planned(program, machine(), numerics, {}, threads)).get(PARTS)


@pytest.mark.sampled("3")
@pytest.mark.parametrize("threads", [2, 3])
def test_each_thread_has_a_part(threads: int) -> None:
    for program in (workload("attention_decode", **DECODE), parse(LOG_SUM_EXP, sizes={"n": 4096})):
        found = in_parts(program, threads)
        assert found
        for plan in found:
            passing, merging = (p for p in plan.parts if isinstance(p, TileLoopsPart))
            assert passing.shared is not None
            assert passing.shared.axis.extent == threads
            assert merging.shared is None or merging.shared.axis.extent == 1


def test_plans_without_parts_stay_beside_them() -> None:
    plans = planned(TuneRequest(workload("attention_decode", **DECODE), machine(), threads=2)).plans
    assert {PARTS} < {family_of(p) for p in plans}


def test_one_thread_has_no_parts() -> None:
    program = workload("attention_decode", **DECODE)
    assert not in_parts(program, 1)
    assert reason(program, 1) == "one thread computes all of a row (--threads)"


@pytest.mark.slow
def test_rows_that_are_enough_have_no_parts() -> None:
    program = workload("attention_decode", **DECODE | {"b": 4})
    assert not in_parts(program, 2)
    assert reason(program, 2) == "4 tiles of rows are enough for 2 threads"
    assert in_parts(program, 5)


def test_a_short_axis_has_no_parts() -> None:
    program = workload("attention_decode", **DECODE | {"l": 2 * LEAST - 1})
    assert not in_parts(program, 2)
    assert reason(program, 2) == f"its {2 * LEAST - 1} elements are no two parts of {LEAST}"


def test_sums_in_their_order_have_no_parts() -> None:
    program = workload("attention_decode", **DECODE)
    request = TuneRequest(program, machine(), threads=2, numerics="reassociated")
    assert PARTS not in {family_of(p) for p in planned(request).every}
    assert reason(program, 2, "reassociated") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heads", "group", "counts"), [(1, 1, {128, 256}), (8, 8, {128, 256}), (16, 8, {64, 128, 256})]
)
def test_blocks_of_a_grid_have_parts(heads: int, group: int, counts: set[int]) -> None:
    program = workload("attention_decode", b=1, h=heads, l=16384, d=64, group=group, t="f16")
    found = in_parts(program, 1, load_target("nvidia-h100"))
    grids = [next(p for p in plan.parts if isinstance(p, TileLoopsPart)) for plan in found]
    assert {next(t for t in g.loops if t.name == "part").axis.extent for g in grids} <= counts
    assert grids
    assert all(g.grid and g.loops[-1].parallel for g in grids)


@pytest.mark.parametrize(
    ("target", "length", "count", "parts"),
    [
        ("x86-avx512", 2048, 2, 2),
        ("x86-avx512", 2048, 3, 3),
        ("x86-avx512", 3 * LEAST + 1, 8, 3),
        ("nvidia-h100", 16384, 132, 128),
        ("nvidia-h100", 16400, 132, 100),
        ("nvidia-h100", 16411, 132, 132),
    ],
)
def test_how_many_parts(target: str, length: int, count: int, parts: int) -> None:
    """Blocks of a GPU have equal parts where a number near divides the axis; no thread of a CPU is idle."""
    assert parts_of(length, count, load_target(target)) == parts
