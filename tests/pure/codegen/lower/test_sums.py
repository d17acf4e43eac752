"""Blocks of channels that come first: sums that wait between them in the order of registers."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import plans_of
from support.programs.cut import AVX2, ONLY, PROGRAMS, cut_plan, cut_rows

from autosched.codegen.analysis.access import classify
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, statements
from autosched.costmodel.analytic.clock import clock
from autosched.ir import workload
from autosched.ir.value import reads
from autosched.tiling.steps.cpu.cache_block import depth_blocks


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_with_blocks_compute_the_program(name: str) -> None:
    plan = cut_plan(name)
    assert disagreement(plan, cut_rows(plan, 3), expect(PROGRAMS[name])) is None


@pytest.mark.slow
def test_threads_have_sums_of_their_own() -> None:
    plan = cut_plan("nchw", threads=2)
    rows = cut_rows(plan, 2, threads=2)
    assert disagreement(plan, rows, expect(PROGRAMS["nchw"])) is None
    buffer = lower(plan, plan.space.schedule(rows[0])).buffers["Y_sums"]
    assert buffer.shape[0] == 2


def test_no_lane_of_a_sum_moves_alone() -> None:
    plan = cut_plan("nchw")
    for row in cut_rows(plan, 4, reg_x=6):
        kernel = lower(plan, plan.space.schedule(row))
        moved = [s for s in statements(kernel.main.body) if isinstance(s, Assign)]
        assert not any(r.tensor == "Y" for s in moved for r in reads(s.value))
        shape = kernel.buffers["Y_sums"].shape
        kept = [s for s in moved if s.buffer == "Y_sums"]
        assert kept
        assert all(classify(s.index, shape, s.lane).kind == "contiguous" for s in kept)


def test_one_block_has_no_sums() -> None:
    plan = cut_plan("nchw")
    ids = plan.space.enumerate().ids
    row = int(ids[plan.space.values(ids)["block_c"] == 0][0])
    assert "Y_sums" not in lower(plan, plan.space.schedule(row)).buffers


def test_the_longest_reduction_around_a_short_depth_is_cut() -> None:
    def nest(**sizes: object):
        plan = plans_of(workload("conv2d", **{"h": 14, "w": 14, "co": 32, "pad": 1, **sizes}), AVX2, only=ONLY)[0]
        return plan.tensor_parts[0].nest

    first, last = nest(ci=256, layout="nchw"), nest(ci=256)
    assert (first.depth.name, first.blocked_reduction.name) == ("s", "c")
    assert (last.depth.name, last.blocked_reduction.name) == ("c", "c")
    window = depth_blocks(first, first.blocked_reduction, few=False)  # 144 to 576 elements of a 3x3 window
    assert window == [16, 32, 64]
    assert depth_blocks(last, last.blocked_reduction, few=False) == [128]
    few = nest(ci=3, layout="nchw")
    assert few.blocked_reduction is few.depth


def test_a_line_of_the_window_is_unrolled_where_registers_hold_what_its_steps_share() -> None:
    plan = cut_plan("nchw")
    ids = plan.space.enumerate().ids
    v = plan.space.values(ids)
    whole = (v["unroll"] == 3) & (v["loads"] == 0)
    assert whole.any()
    direct = whole & (v["pack_a"] != 1) & (v["pack_a"] != 4)
    live = v["reg_y"] * v["reg_x"] * v["reg_o"] + v["reg_o"] + v["reg_y"] * np.maximum(v["reg_x"] - 1, 1)
    assert (live[direct] <= 16).all()
    assert (live[(v["unroll"] == 1) & (v["loads"] == 0)] > 16).any()


def test_unrolled_steps_share_loads_by_the_clock_too() -> None:
    plan = cut_plan("nchw")
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions} | {"pack_a": "padded"}
    base |= {"pack_b": "panel", "reg_x": 6, "reg_o": 1, "reg_y": 1}
    rows = [plan.space.row_of(base | {"unroll": n}) for n in (1, 3)]
    each, whole = clock(plan, plan.space.values(np.array(rows)))["load"]
    assert whole < 0.7 * each  # 3 + 8 of 3 + 18 loads
