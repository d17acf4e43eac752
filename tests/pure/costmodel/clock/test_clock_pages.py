"""What the clock knows of matrices that are read as they lie, from page to page: measured pairs of schedules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.plans import plans_of

from autosched.costmodel.analytic.clock import clock
from autosched.ir import Program, workload
from autosched.machine.catalogue import load_target
from autosched.tiling.plans.plan import Plan

ZEN = load_target("amd-zen4")


def plan_of(m: int, kind: str) -> Plan:
    """A product with 4096x4096 values that nobody packs beforehand."""
    types: dict[str, str] = {"f32": {}, "u8s8": {"a": "u8", "b": "s8", "acc": "s32"}}[kind]
    return unpacked(workload("matmul", m=m, n=4096, k=4096, **types))


def unpacked(program: Program) -> Plan:
    program = replace(program, tensors={n: replace(t, const=False) for n, t in program.tensors.items()})
    return next(p for p in plans_of(program, ZEN) if "zmm(i←j" in p.name)


def terms(plan: Plan, **chosen: int | str) -> dict[str, float]:
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    row = plan.space.row_of({**base, **chosen})
    assert plan.space.legal(np.array([row])).all()
    return {name: float(column[0]) for name, column in clock(plan, plan.space.values(np.array([row]))).items()}


def seconds(plan: Plan, **chosen: int | str) -> float:
    return terms(plan, **chosen)["total"]


def test_narrow_tiles_that_walk_over_all_pages_wait() -> None:
    """16 rows of bytes on Zen 5: 4.4 ms as the first, 1.13 as the second."""
    plan = plan_of(16, "u8s8")
    narrow = seconds(plan, reg_i=8, reg_j=3, pack_b="direct", order="j i p")
    packed = seconds(
        plan, reg_i=6, reg_j=4, block_j=4, block_p=128, order="p j i", inner="lanes", pack_a="panel", pack_b="block"
    )
    assert packed < 0.6 * narrow


def test_the_next_tile_finds_the_pages_of_a_short_depth() -> None:
    """One row of bytes on Zen 5, tiles of 64 bytes: 1.5 ms with the depth inside, 0.65 with all tiles inside."""
    plan = plan_of(1, "u8s8")
    inside = seconds(plan, reg_j=4, block_j=2, block_p=128, order="j p", pack_b="direct")
    outside = seconds(plan, reg_j=4, block_j=2, block_p=128, order="p j", pack_b="direct")
    assert outside < 0.7 * inside


def test_one_row_reads_a_matrix_in_its_order() -> None:
    """f32 on Zen 5: 1.53 ms with 8 rows of the matrix at a time, 2.05 to 2.2 with 128 and more."""
    plan = plan_of(1, "f32")
    shared: dict[str, int | str] = {"reg_j": 8, "order": "p j", "pack_b": "direct", "unroll": 1, "block_j": 1}
    few, many = (seconds(plan, **shared, block_p=n) for n in (8, 256))
    assert few < many


def test_few_rows_of_a_matrix_are_no_block_where_something_reuses_it() -> None:
    for m in (1, 4):
        assert 8 in plan_of(m, "f32").space.decision("block_p").domain
    assert min(n for n in plan_of(16, "f32").space.decision("block_p").domain if n) == 128


def test_interleaving_a_matrix_outside_the_caches_moves_it_again() -> None:
    packs = []
    for n in (256, 4096):
        plan = unpacked(workload("matmul", m=16, n=n, k=n, a="u8", b="s8", acc="s32"))
        packs.append(terms(plan, reg_i=4, reg_j=4, pack_b="interleaved")["pack"])
    assert packs[1] > 1.2 * packs[0] * (4096 / 256) ** 2
