"""What the clock knows of operands that come from memory, and of rows that share a cache set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.plans import machine, plans_of

from autosched.costmodel.analytic.clock import clock, run_length
from autosched.ir import workload
from autosched.tiling.plans.plan import Plan


def wide(m: int, n: int, k: int) -> Plan:
    return next(p for p in plans_of(workload("matmul", m=m, n=n, k=k), machine()) if "zmm(i←j" in p.name)


def seconds(plan: Plan, **chosen: int | str) -> float:
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    row = plan.space.row_of({**base, "reg_j": 1, "pack_b": "panel", **chosen})
    return float(clock(plan, plan.space.values(np.array([row])))["total"][0])


def test_a_sequence_waits_for_its_addition_only_before_it_may_follow_on_an_accumulator() -> None:
    """VPMADDWD and VPADDD take five cycles, of which the accumulator sees the last."""
    target = machine(frozenset(["avx2", "fma"]), 16, 32)
    plans = plans_of(workload("matmul", m=12, n=256, k=1024, t="s16"), target)
    plan = next(p for p in plans if "vpmaddwd.ymm(i←j" in p.name)
    names = {d.name.split(".")[-1]: d.name for d in plan.space.decisions}
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    tiles = ({"reg_i": 1, "reg_j": 2}, {"reg_i": 4, "reg_j": 2})
    rows = [plan.space.row_of({**base, **{names[k]: v for k, v in tile.items()}}) for tile in tiles]
    few, many = clock(plan, plan.space.values(np.array(rows)))["compute"].tolist()
    assert few < 1.5 * many


def test_asking_ahead_pays_where_work_is_done_on_each_line() -> None:
    many, one = wide(8, 4096, 4096), wide(1, 4096, 4096)
    assert seconds(many, reg_i=8, reg_j=3, prefetch=64) < seconds(many, reg_i=8, reg_j=3, prefetch=0)
    assert seconds(one, reg_j=8, prefetch=64) > seconds(one, reg_j=8, prefetch=0)


def test_the_clock_does_not_tell_prefetching_apart_where_nothing_streams() -> None:
    small, large = wide(8, 64, 64), wide(8, 2048, 2048)
    assert run_length(small) == 4
    assert run_length(large) == 2
    assert seconds(small, prefetch=8) == seconds(small, prefetch=0)


def test_rows_a_page_apart_are_packed_where_they_outnumber_the_ways() -> None:
    pages, between = wide(16, 512, 1024), wide(16, 512, 1040)
    assert seconds(pages, reg_i=16, pack_a="panel") < seconds(pages, reg_i=16, pack_a="direct")
    assert seconds(between, reg_i=16, pack_a="panel") > seconds(between, reg_i=16, pack_a="direct")


def test_one_core_draws_less_from_memory_than_all() -> None:
    program, two = workload("matmul", m=1, n=4096, k=4096), machine()
    memories = tuple(replace(m, core_bandwidth_bytes_per_s=1.5e10) if m.name == "dram" else m for m in two.memories)
    found = {}
    for name, target in (("unknown", two), ("known", replace(two, memories=memories))):
        plan = next(p for p in plans_of(program, target, threads=2) if "zmm(i←j" in p.name)
        base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
        rows = [plan.space.row_of({**base, "pack_b": "panel", "threads": n}) for n in (1, 2)]
        found[name] = clock(plan, plan.space.values(np.array(rows)))["memory"]
    assert found["unknown"][0] == found["unknown"][1] == found["known"][1]
    np.testing.assert_allclose(found["known"][0], found["known"][1] * 4 / 3)
