"""GPU spaces: every sampled row lowers, is well formed, and computes the oracle's numbers in the interpreter."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import CATALOGUE, H200, covering, plans
from support.compiled.kernel_check import check_kernel

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, Kernel
from autosched.device.correctness.oracle import compute
from autosched.device.simulator.verify.verify import check
from autosched.ir import parse, resolve
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.space.request import request
from autosched.tiling.variants.conditional import candidates_of

FEW = dataclasses.replace(H200, cores=3)
"""So few cores that small programs have more tiles than cores, and blocks can be persistent."""
BF16 = {"a": "bf16", "b": "bf16", "acc": "f32"}
F16 = {"a": "f16", "b": "f16", "acc": "f32"}
S8 = {"a": "s8", "b": "s8", "acc": "s32"}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "wgmma": ("matmul", "cuda/wgmma.m64n8k16.*.f32", {"m": 128, "n": 16, "k": 48, "out": "bf16", **BF16}),
    "mma bf16": ("matmul", "cuda/mma.m16n8k8.*", {"m": 32, "n": 16, "k": 32, **BF16}),
    "mma ragged": ("matmul", "cuda/mma.m16n8k8.*", {"m": 17, "n": 9, "k": 20, **F16}),
    "four products": ("batch_matmul", "cuda/mma.m8n8k4.f16.*", {"batch": 3, "m": 10, "n": 9, "k": 10, **F16}),
    "wmma s8": ("matmul", "cuda/wmma.m16*", {"m": 20, "n": 17, "k": 24, **S8}),
    "dp4a": ("matmul_nt", "cuda/dp4a*", {"m": 4, "n": 6, "k": 32, **S8}),
    "portable": ("matmul", "portable/*v4", {"m": 6, "n": 9, "k": 5, "a": "f32", "b": "f32", "acc": "f32"}),
    "conv2d": ("conv2d", "cuda/mma.m16n8k8.*", {"h": 3, "w": 4, "ci": 8, "co": 9, **F16}),
    "strided conv2d": ("conv2d", "cuda/mma.m16n8k8.*", {"h": 4, "w": 3, "ci": 5, "co": 9, "stride": 2, **F16}),
    "fused": ("matmul_bias_relu", "portable/*v4", {"m": 5, "n": 6, "k": 7}),
    "gemv": ("gemv", "portable/*v4", {"m": 11, "k": 9}),
}
"""Workload, instructions and sizes; of each all rows of a covering sample are run."""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_rows_compute_the_oracles_numbers(case: str) -> None:
    name, only, sizes = CASES[case]
    program, (plan, *_) = plans(name, only, FEW, **sizes)
    assert plan.tensor_parts
    oracle = compute(program, 0)
    for row in covering(plan):
        kernel = lower(plan, plan.space.schedule(row))
        check_kernel(kernel)
        difference = check(kernel, oracle)
        assert difference.ok, (plan.space.schedule(row), difference)


@pytest.mark.slow
def test_partial_sums_of_few_bits_are_promoted() -> None:
    """On the accumulator of 13 fraction bits alone a long sum is far off; emptied every two slices it is not."""
    sizes = {"m": 64, "n": 8, "k": 1024, "a": "e4m3", "b": "e4m3", "acc": "f32"}
    program = resolve("matmul_nt", sizes)
    intrinsic = CATALOGUE["cuda/wgmma.m64n8k32.e4m3.e4m3.f32"].on(H200.features)
    (plan, *_) = make_plans(program, H200, candidates_of(match(program, [intrinsic], "real")))
    oracle = compute(program, 0)
    errors = []
    for interval in (0, 2):
        row = request(plan.space, {"promote": interval, "block_p": 4, "copy": "sync", "vector": "16 B", "split": 1}).row
        assert row is not None
        errors.append(check(lower(plan, plan.space.schedule(row)), oracle).error)
    assert errors[1] < errors[0] / 2


def test_two_sums_that_are_split_keep_their_shares_apart() -> None:
    text = """
def two(A: f16[16, 64], B: f16[64, 8], C: f32[16, 8], D: f16[16, 64], E: f16[64, 8], F: f32[16, 8]):
    for i, j in grid(16, 8):
        C[i, j] = 0
        for p in range(64):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
    for y, x in grid(16, 8):
        F[y, x] = 0
        for q in range(64):
            F[y, x] += f32(D[y, q]) * f32(E[q, x])
"""
    program = parse(text)
    intrinsic = CATALOGUE["cuda/mma.m16n8k8.f16.f16.f32"].on(FEW.features)
    (plan, *_) = make_plans(program, FEW, candidates_of(match(program, [intrinsic])))
    row = request(plan.space, {"C.split": 2, "F.split": 2}).row
    assert row is not None
    assert check(lower(plan, plan.space.schedule(row)), compute(program, 0)).ok


def test_scalar_stages_run_in_blocks() -> None:
    program, (plan, *_) = plans("softmax", "portable/*", m=5, n=40)
    oracle = compute(program, 0)
    for row in covering(plan):
        kernel = lower(plan, plan.space.schedule(row))
        check_kernel(kernel)
        assert check(kernel, oracle).ok
        assert any(isinstance(s, For) and s.kind == "block.x" for s in kernel.main.body)


def loops(kernel: Kernel) -> list[For]:
    found: list[For] = []

    def visit(body: tuple[Any, ...]) -> None:
        for stmt in body:
            if isinstance(stmt, For):
                found.append(stmt)
            visit(getattr(stmt, "body", ()))

    visit(kernel.main.body)
    return found


def test_loops_are_bound_and_cpu_decisions_absent() -> None:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=64, n=64, k=64, a="f16", b="f16", acc="f32")
    names = {d.name for d in plan.space.decisions}
    assert {"reg_i", "warps_i", "stage_a", "unroll", "raster"} <= names
    assert not names & {"threads", "order", "inner", "pack_a", "prefetch", "prefetch_out", "block_i"}
    row = plan.space.row_of({"reg_i": 2, "warps_i": 2, "stage_a": "shared"})
    kernel = lower(plan, plan.space.schedule(row))
    assert {"block.x", "block.y", "warp"} <= {loop.kind for loop in loops(kernel)}
    assert {b.scope for b in kernel.buffers.values()} == {"global", "register", "shared"}
    assert sum(loop.kind == "warp" for loop in loops(kernel)) == 4  # start, copy, compute, finish


def test_raster_swaps_the_grid() -> None:
    _, found = plans("matmul", "cuda/wmma.*", m=64, n=64, k=64, a="f16", b="f16", acc="f32")
    plan = next(p for p in found if "(i←i, j←j," in p.name)
    for raster, fastest in (("last fastest", "jb"), ("first fastest", "ib")):
        kernel = lower(plan, plan.space.schedule(plan.space.row_of({"raster": raster})))
        assert [loop.var for loop in loops(kernel) if loop.kind == "block.x"] == [fastest]


def test_rules_say_numbers() -> None:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=4096, n=4096, k=4096, a="f16", b="f16", acc="f32")
    said = plan.space.why_not(plan.space.row_of({"reg_i": 8, "reg_j": 8, "warps_i": 8, "warps_j": 8}))
    assert "2,048 threads in a block > 1,024" in said
    assert any(s.endswith("registers a thread > 255") and s.split()[0].isdigit() for s in said)
    wide = plan.space.row_of({"reg_i": 8, "warps_i": 8, "reg_j": 1, "stage_a": "shared", "block_p": 8, "unroll": 1})
    # 262,144 of slices, and two pieces a warp that fragments may pass through
    assert "274,432 bytes of shared memory in a block > 232,448" in plan.space.why_not(wide)


def test_a_tile_wider_than_its_axis_is_refused() -> None:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=48, n=16, k=16, a="f16", b="f16", acc="f32")
    assert "a block takes 6 tiles along i, which has 3" in plan.space.why_not(
        plan.space.row_of({"reg_i": 3, "warps_i": 2})
    )


def test_a_forgotten_copy_is_noticed() -> None:
    """The interpreter finds a kernel that reads shared memory nobody filled: the tests above can fail."""
    program, (plan, *_) = plans("matmul", "cuda/wmma.*", m=32, n=16, k=32, a="f16", b="f16", acc="f32")
    kernel = lower(plan, plan.space.schedule(plan.space.row_of({"stage_a": "shared", "block_p": 1})))

    def without(body: tuple[Any, ...]) -> tuple[Any, ...]:
        kept = []
        for s in body:
            if isinstance(s, For) and s.note.startswith("copy a slice"):
                continue
            kept.append(dataclasses.replace(s, body=without(s.body)) if isinstance(s, For) else s)
        return tuple(kept)

    broken = dataclasses.replace(kernel, main=dataclasses.replace(kernel.main, body=without(kernel.main.body)))
    oracle = compute(program, 0)
    with pytest.raises(AssertionError, match="A_shared"):
        run_kernel(broken, oracle.inputs, oracle.scalars)


def test_the_target_decides_the_limits() -> None:
    small = dataclasses.replace(H200, limits=H200.limits | {"registers_per_thread": 96, "shared_bytes": 4096})
    sizes = {"m": 64, "n": 64, "k": 64, "a": "f16", "b": "f16", "acc": "f32"}
    many = len(plans("matmul", "cuda/wmma.*", **sizes)[1][0].space.enumerate())
    few = plans("matmul", "cuda/wmma.*", target=small, **sizes)[1][0].space.enumerate()
    assert 0 < len(few) < many
    assert few.rejected["registers"] > 0
    assert few.rejected["shared_bytes"] > 0
    values = plans("matmul", "cuda/wmma.*", target=small, **sizes)[1][0].space.values(few.ids)
    assert np.max(values["registers"]) <= 96
    assert np.max(values["shared_bytes"]) <= 4096


def test_rows_are_padded_in_place_of_swizzled() -> None:
    sizes = {"m": 256, "n": 256, "k": 256, **F16}
    _, (plan, *_) = plans("matmul_nt", "cuda/wmma.m16n16k16.f16.f32", **sizes)
    staged = {"stage_a": "shared", "stage_b": "shared", "block_p": 4}
    said = plan.space.why_not(plan.space.row_of(staged | {"swizzle": "128 B"}))
    assert "fragments of a are lines evenly apart, and a swizzle of 128 B bends them" in said
    assert "8 of eight rows of a meet in one bank > 4" in plan.space.why_not(plan.space.row_of(staged))
    padded = plan.space.row_of(staged | {"padding": "16 B"})
    assert not plan.space.why_not(padded)
    assert int(plan.space.values(padded)["slice_bytes"][0]) == 2 * 16 * (128 + 16)  # rows of both operands
    engine = plan.space.row_of(staged | {"padding": "16 B", "copy": "TMA"})
    assert "rows of TMA's boxes follow each other, and 16 B are to lie between them" in plan.space.why_not(engine)
    both = {"swizzle": "64 B", "padding": "16 B", "block_p": 2}
    _, (plan, *_) = plans("matmul_nt", "cuda/mma.m16n8k16.*", **sizes)
    assert [r.name for r in plan.space.violated(plan.space.row_of(staged | both))] == ["canonical"]
