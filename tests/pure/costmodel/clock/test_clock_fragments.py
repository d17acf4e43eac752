"""The GPU clock's view of fragments: what threads of a warp read together, and what loading ahead is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import H200, plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, Kernel, statements
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.gpu.fragments import WIDE_SHARE, lanes_share
from autosched.ir.value import Read
from autosched.logic import Int, evaluate, free_vars
from autosched.machine.catalogue import load_target
from autosched.tiling.space.request import request
from autosched.tiling.steps.gpu.block_tile import gpu_pair, workers_name

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
        return lanes_share(part.nest.intrinsic, pair, own, along, 32).tolist()

    reads = [share(o.name) for o in part.nest.intrinsic.inputs]
    assert sorted(reads) == [[0.25, 0.25, 0.25], [0.5, 1.0, 0.25]]


def addresses(kernel: Kernel, tensor: str, warp: int) -> float:
    """The part of a warp's threads that read different elements of a slice in shared memory, for one register each."""
    loads = (s.value for s in statements(kernel.main.body) if isinstance(s, Assign) and isinstance(s.value, Read))
    read = next(r for r in loads if r.tensor == f"{tensor}_shared" and kernel.buffers[r.tensor].scope == "shared")
    others = {v: 0 for i in read.index if isinstance(i, Int) for v in free_vars(i)}
    places = {
        tuple(int(evaluate(i, others | {"thread": t})) for i in read.index if isinstance(i, Int)) for t in range(warp)
    }
    return len(places) / warp


@pytest.mark.parametrize("threads", [(16, 8), (4, 32), (8, 16), (32, 2)])
@pytest.mark.parametrize("name", ["amd-mi300x", "nvidia-h200"])
def test_threads_of_a_lowered_kernel_read_as_many_addresses(name: str, threads: tuple[int, int]) -> None:
    """Also where warps have 64 threads."""
    target = load_target(name)
    only = "portable/mac.f32.f32.f32.v4" if target.isa == "hip" else "cuda/fma.f32.v4"
    _, (plan, *_) = plans("matmul", only, target, a="f32", b="f32", acc="f32", m=512, n=512, k=64)
    part, warp = plan.tensor_parts[0], target.limits["warp_threads"]
    pair = gpu_pair(part.nest)
    chosen = {workers_name(part.nest, part.names, a): n for a, n in zip(pair, threads, strict=True)}
    answer = request(plan.space, {"stage_a": "shared", "stage_b": "shared", **chosen})
    assert answer.row is not None, str(answer)
    kernel = lower(plan, plan.space.schedule(answer.row))
    for operand in part.nest.intrinsic.inputs:
        own = [a for a in pair if a in part.nest.operand_axes(operand.name)]
        along = [np.array([float(n)]) for n in threads]
        (share,) = lanes_share(part.nest.intrinsic, pair, own, along, warp).tolist()
        tensor = part.nest.mapping.operands[operand.name].tensor
        assert share == max(addresses(kernel, tensor, warp), WIDE_SHARE)
