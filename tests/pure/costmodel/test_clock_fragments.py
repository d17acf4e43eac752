"""The GPU clock's view of fragments: what threads of a warp read together, and what loading ahead is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.cards.gpu_plans import H200, plans

from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.gpu.fragments import lanes_share
from autosched.tiling.space.request import request
from autosched.tiling.steps.gpu.block_tile import gpu_pair

F16 = {"a": "f16", "b": "f16", "acc": "f32", "m": 4096, "n": 4096, "k": 4096}
SHARED = {"stage_a": "shared", "stage_b": "shared", "copy": "cp.async", "stages": 3, "vector": "16 B", "block_p": 4}


def seconds(name: str, only: str, wanted: dict[str, Any], sizes: dict[str, Any]) -> float:
    _, (plan, *_) = plans(name, only, H200, **sizes)
    answer = request(plan.space, wanted)
    assert answer.row is not None, str(answer)
    return float(clock(plan, plan.space.values(np.array([answer.row])))["total"][0])


def test_loading_ahead_is_worth_most_where_fragments_are_opaque() -> None:
    def gain(only: str, more: dict[str, Any]) -> float:
        wish = SHARED | {"warps_i": 2, "warps_j": 4, "reg_i": 4, "split": 1} | more
        turn, ahead = (seconds("matmul_nt", only, wish | {"fragments": f}, F16) for f in ("in turn", "ahead"))
        return turn / ahead

    mma = gain("cuda/mma.m16n8k16.f16.f16.f32", {"reg_j": 8, "swizzle": "128 B"})
    wmma = gain("cuda/wmma.m16n16k16.f16.f32", {"reg_j": 4, "padding": "16 B"})
    assert 1.05 < mma < wmma < 2.0


def test_threads_side_by_side_read_the_same() -> None:
    _, (plan, *_) = plans("matmul", "cuda/fma.f32.v4", H200, a="f32", b="f32", acc="f32", m=64, n=64, k=64)
    part = plan.parts[0]
    pair, along = gpu_pair(part.nest), [np.array([16.0, 4.0, 1.0]), np.array([16.0, 32.0, 8.0])]

    def share(operand: str) -> list[float]:
        own = [a for a in pair if a in part.nest.operand_axes(operand)]
        return lanes_share(part.nest.intrinsic, pair, own, along).tolist()

    reads = [share(o.name) for o in part.nest.intrinsic.inputs]
    assert sorted(reads) == [[0.25, 0.25, 0.25], [0.5, 1.0, 0.25]]
