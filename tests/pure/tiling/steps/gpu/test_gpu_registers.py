"""What a row's registers grow by with its decisions; `tests/cuda/test_registers` asks a compiler for the sums."""

from __future__ import annotations

from typing import Any

import pytest
from support.cards.gpu_plans import H200, plans

from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.gpu.thread_registers import OPAQUE, WARPS, RegisterTerms

F16 = {"m": 4096, "n": 4096, "k": 4096, "a": "f16", "b": "f16", "acc": "f32", "out": "f16"}
ROW: dict[str, Any] = {
    "copy": "cp.async", "vector": "16 B", "stage_a": "shared", "stage_b": "shared", "split": 1, "persistent": "no",
    "reg_i": 4, "reg_j": 4, "warps_i": 2, "warps_j": 2, "block_p": 2, "stages": 3, "fragments": "in turn",
    "swizzle": "none",
}  # fmt: skip


def values(plan: Plan, **changed: Any) -> dict[str, int]:
    row = plan.space.row_of(ROW | changed)
    return {name: int(column[0]) for name, column in plan.space.values(row).items()}


@pytest.mark.parametrize(
    ("only", "taken"), [("cuda/mma.m16n8k16.f16.f16.f32", WARPS), ("cuda/wmma.m16n16k16.f16.f32", OPAQUE)]
)
def test_decisions_count_what_they_hold(only: str, taken: RegisterTerms) -> None:
    _, (plan, *_) = plans("matmul_nt", only, H200, **F16)
    plain = values(plan)
    ahead = values(plan, fragments="ahead")
    assert plain["ahead_registers"] == 0
    held = ahead["ahead_registers"]
    assert held > 0
    assert ahead["registers"] - plain["registers"] == pytest.approx(held * taken.ahead / 100, abs=1)
    again = values(plan, persistent="yes")
    more = (taken.persistent + taken.persistent_copied) / 100
    assert again["registers"] - plain["registers"] == pytest.approx(more, abs=1)
    wide = values(plan, reg_j=2)
    assert plain["registers"] - wide["registers"] >= (plain["accumulators"] - wide["accumulators"]) * 4
