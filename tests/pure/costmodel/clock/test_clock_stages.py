"""A stage more is worth something on a GPU even where slices arrive in time on average: some of them are late."""

from __future__ import annotations

import numpy as np

import autosched
from autosched.costmodel.analytic.clock import part_terms, timed_parts
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.space.request import request

LARGE = {"m": 3000, "n": 3000, "k": 3000, "a": "f16", "b": "f16", "out": "f16"}
ROW = {"copy": "TMA", "swizzle": "128 B", "block_p": 4, "roles": "producer", "groups_i": 3, "reg_i": 1, "reg_j": 1,
       "groups_j": 1, "persistent": "yes", "group": 8, "cluster": "2 along j", "split": 1}  # fmt: skip


def test_results_that_leave_by_span_make_room_for_a_fourth_stage() -> None:
    """The row that is the fastest on an H100 (docs/experiments/gpu.md) is the fastest of these by the clock."""
    only = ("cuda/wgmma.m64n192k16.f16.f32",)
    program, target = autosched.workload("matmul", **LARGE), autosched.target("nvidia-h100")
    _, (plan, *_) = plans_of(TuneRequest(program, target, only=only))
    (part,) = timed_parts(plan)
    ways = [(2, "TMA by span"), (3, "TMA"), (3, "TMA by span"), (4, "TMA by span")]
    seconds = []
    for stages, epilogue in ways:
        row = request(plan.space, ROW | {"stages": stages, "epilogue": epilogue}).row
        assert row is not None
        seconds.append(float(part_terms(part, plan.space.values(np.array([row])))["total"][0]))
    assert np.argmin(seconds) == len(ways) - 1
    assert seconds[0] > 1.2 * seconds[2], "of two stages one is used"
    assert seconds[2] > seconds[3]
    assert request(plan.space, ROW | {"stages": 4, "epilogue": "TMA"}).row is None, "its tile leaves no room"
