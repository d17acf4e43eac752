"""Which block computes which tile: clusters of several shapes, and groups of the raster that end early."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import H200, plans
from support.compiled.kernel_check import check_kernel

from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock
from autosched.device.correctness.oracle import compute
from autosched.device.simulator.verify.verify import check
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request
from autosched.tiling.steps.gpu.grid_order import grouped_cores

FEW = dataclasses.replace(H200, cores=3)
BF16 = {"a": "bf16", "b": "bf16", "acc": "f32"}


def runs(program: Any, plan: Plan, wish: dict[str, Any]) -> None:
    answer = request(plan.space, wish)
    assert answer.row is not None, str(answer)
    kernel = lower(plan, plan.space.schedule(answer.row))
    check_kernel(kernel)
    difference = check(kernel, compute(program, 0))
    assert difference.ok, (plan.space.schedule(answer.row), difference)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cluster", ["4 along i", "4 along j", "2 along j"])
@pytest.mark.parametrize("more", [{"roles": "producer", "persistent": "yes"}, {"roles": "together", "stages": 2}])
def test_clusters_of_four_share_what_they_fetch(cluster: str, more: dict[str, Any]) -> None:
    target = dataclasses.replace(H200, cores=5)
    program, (plan, *_) = plans("matmul", "cuda/wgmma.m64n8k16.*.f32", target, m=512, n=32, k=64, **BF16)
    runs(program, plan, {"cluster": cluster, "copy": "TMA", "reg_i": 1, "groups_i": 1, "reg_j": 1, **more})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("swapped", [0, 1])
def test_groups_need_not_divide_the_grid(swapped: int) -> None:
    """Eleven by nine tiles in groups of eight: the last group has three rows, or one."""
    program, (plan, *_) = plans("matmul", "cuda/mma.m16n8k8.*", FEW, m=16 * 11, n=8 * 9, k=16, **BF16)
    tile = {"reg_i": 1, "warps_i": 1, "reg_j": 1, "warps_j": 1}
    runs(program, plan, {**tile, "raster": swapped, "group": 8, "persistent": 0})
    runs(program, plan, {**tile, "raster": swapped, "group": 8, "persistent": 1})


@pytest.mark.slow
def test_one_group_of_all_rows_is_no_schedule_of_its_own() -> None:
    _, (plan, *_) = plans("matmul", "cuda/mma.m16n8k8.*", FEW, m=128, n=128, k=16, **BF16)
    tile = {"reg_i": 1, "warps_i": 1, "reg_j": 1, "warps_j": 1}
    assert request(plan.space, {**tile, "raster": 0, "group": 8}).row is None
    assert "8 tiles in groups of 8" in str(request(plan.space, {**tile, "raster": 0, "group": 8}))


def test_the_clock_counts_blocks_of_clusters() -> None:
    """Stream-K fills the cores with blocks, whether these are in clusters or not: as many work on as many slices, but
    that clusters of four leave some cores alone."""
    _, (plan, *_) = plans("matmul", "cuda/wgmma.m64n128k16.*.f32", H200, m=4096, n=1792, k=4096, **BF16)
    wish = {"split": "stream", "copy": "TMA", "roles": "producer", "stages": 3, "reg_i": 1, "groups_i": 2, "reg_j": 1}
    rows = [request(plan.space, {**wish, "cluster": c}).row for c in ("none", "2 along i", "4 along i")]
    assert None not in rows
    seconds = clock(plan, plan.space.values(np.array(rows)))
    used = np.array([H200.cores, H200.cores, grouped_cores(H200.cores)])
    assert np.allclose(seconds["mma"] * used, seconds["mma"][0] * H200.cores, rtol=0.05)


@pytest.mark.slow
def test_boxes_begin_at_whole_chunks() -> None:
    """Three bytes a tile along the rows of b: only every sixteenth box would begin where the engine can."""
    s8 = {"a": "s8", "b": "s8", "acc": "s32"}
    _, (plan, *_) = plans("matmul", "cuda/dp4a*", FEW, m=96, n=80, k=64, **s8)
    ids = plan.space.sample(4000, np.random.default_rng(0))
    values = plan.space.values(ids)
    engine = (values["copy"] == 2) & (values["stage_b"] > 0)
    assert engine.any()
    assert np.all(values["tile_j"][engine] % 16 == 0)
    narrow = request(plan.space, {"copy": "TMA", "stage_b": "shared", "reg_j": 3, "threads_j": 1})
    assert narrow.row is None
    assert "8 bits, no multiple of 128" in str(narrow)
