"""The simulator's copies: how often a core's memory is asked, boxes row by row, and barriers where they stand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.cards.gpu_plans import H200, plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.gpu import block_code as gpu_code
from autosched.device.simulator.gpu.block_code import ENGINE
from autosched.device.simulator.gpu.gpu_costs import accesses
from autosched.device.simulator.gpu.gpu_model import gpu_estimate, play
from autosched.device.simulator.gpu.warp_accesses import lines, shared_turns
from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.walk import facts
from autosched.tiling.plans.plan import Plan

SIZES = {"m": 1024, "n": 1024, "k": 512, "a": "bf16", "b": "bf16", "acc": "f32", "out": "bf16"}
COMMON = {"reg_i": 1, "groups_i": 2, "reg_j": 1, "groups_j": 1, "raster": 0, "stage_a": 2, "stage_b": 2}
ALONE = {"persistent": 0, "group": 1, "split": 1, "epilogue": 0, "unroll": 1}
TMA = COMMON | ALONE | {"copy": 2, "stages": 4, "vector": 0}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of("wgmma.m64n128k16.bf16.f32")


def plan_of(instruction: str) -> Plan:
    found = plans("matmul_nt", instruction, **SIZES)[1]
    return next(p for p in found if "wgmma" in p.name)


def kernel(plan: Plan, **decisions: int) -> Kernel:
    names = {d.name for d in plan.space.decisions}
    row = plan.space.row_of({n: v for n, v in (TMA | decisions).items() if n in names})
    assert plan.space.legal([row]).all()
    return lower(plan, plan.space.schedule(row))


def seconds(made: Kernel) -> float:
    return gpu_estimate(made, [facts(made, s) for s in made.main.body], H200).seconds["total"]


def test_boxes_of_narrow_rows_keep_the_engine_busy_for_longer(plan: Plan) -> None:
    """The same bytes in spans of 16 bytes and of 128."""
    deep = {"block_p": 4, "roles": 1, "cluster": 0}
    narrow, wide = (kernel(plan, swizzle=s, **deep) for s in (0, 128))
    busy = [play(k, facts(k, k.main.body[0]), H200).outcome.busy[ENGINE] for k in (narrow, wide)]
    assert 3 < busy[0] / busy[1] < 5
    assert seconds(narrow) > 1.5 * seconds(wide)


def test_boxes_for_a_cluster_leave_l2_once_and_reach_every_block(plan: Plan) -> None:
    deep = {"block_p": 4, "swizzle": 128, "roles": 1}
    alone, both = (facts(k, k.main.body[0]) for k in (kernel(plan, cluster=c, **deep) for c in (0, 1)))

    def total(of: Facts, received: bool) -> float:
        boxes = [f for f in of.fetches if not f.store]
        return sum(f.runs * f.rows * f.row_bytes * (f.blocks if received else 1) for f in boxes)

    assert total(alone, received=True) == total(both, received=True) == total(alone, received=False)
    assert total(both, received=False) < total(alone, received=False)


def test_a_barrier_stands_in_each_slice_of_workers_that_start_their_copies(plan: Plan) -> None:
    deep = {"block_p": 4, "swizzle": 128, "cluster": 0}
    for roles in (0, 1):
        made = kernel(plan, roles=roles, **deep)
        levels = facts(made, made.main.body[0]).levels.values()
        often = sum(level.runs / max(level.trips, 1.0) for level in levels if level.barrier)
        slices = next(level.runs for level in levels if level.var == "slice")
        assert often >= slices if not roles else often < slices


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_turns_of_the_banks_are_those_of_counting(size: int) -> None:
    rng = np.random.default_rng(size)
    for stride in (size, 2 * size, 64, 128, 144):
        starts = np.arange(32) * stride + int(rng.integers(4)) * 16
        words = max(1, size // 4)
        group = 32 // words
        want = 0
        for k in range(0, 32, group):
            asked = {s // 4 + w for s in starts[k : k + group] for w in range(words)}
            want += max(Counter(w % 32 for w in asked).values())
        assert shared_turns(starts, size) == want
    assert shared_turns(np.arange(32) * size, size) == max(1, size // 4)
    assert shared_turns(np.arange(32) * 128, size) == 32


def test_lines_of_a_warp() -> None:
    assert lines(np.arange(32) * 4, 4) == 1
    assert lines(np.arange(32) * 16, 16) == 4
    assert lines(np.arange(32) * 4096, 2) == 32
    assert lines(np.arange(32) * 16 + 120, 16) == 5


def test_shares_of_a_sum_that_l2_keeps_come_from_there(plan: Plan) -> None:
    """Shares of 4 MiB each: four of them fit one half of an H200's L2, eight do not, and come from memory twice as
    late as from L2."""
    ends = {}
    for split in (4, 8):
        made = kernel(plan, split=split, block_p=1, swizzle=32, roles=1, cluster=0, gather=0)
        first, second = (facts(made, s) for s in made.main.body)
        left = play(made, first, H200).left
        assert left == (frozenset({"S_shares"}) if split == 4 else frozenset())
        runs = [play(made, second, H200, kept=kept) for kept in (frozenset(), left)]
        ends[split] = runs[1].outcome.end
        assert runs[1].moved["L2"] == runs[0].moved["L2"]
        assert (runs[1].moved["DRAM"] < runs[0].moved["DRAM"] / 4) == (split == 4)
    assert ends[8] > 2.5 * ends[4]


def test_few_loads_on_their_way_make_a_sum_of_shares_late(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands of arithmetic come element by element, so many at a time as a warp has on their way; where a thread has
    room for a share beside its sums they are loaded whole before."""
    shared = {"split": 8, "block_p": 1, "swizzle": 32, "roles": 1, "cluster": 0, "gather": 0}
    whole = kernel(plan, **shared)
    assert not any(t.single for t in facts(whole, whole.main.body[1]).touches if t.buffer == "S_shares")
    made = kernel(plan_of("wgmma.m64n256k16.bf16.f32"), **shared)
    second = facts(made, made.main.body[1])
    (shares,) = [t for t in second.touches if t.buffer == "S_shares"]
    assert shares.single
    assert shares.lane is not None
    assert accesses(shares, 32, 32) == shares.lane.width / 32
    before = play(made, second, H200).outcome.end
    monkeypatch.setattr(gpu_code, "IN_FLIGHT", 2 * gpu_code.IN_FLIGHT)
    assert play(made, second, H200).outcome.end < 0.7 * before
