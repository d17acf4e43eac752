"""Texts of instructions with scales of groups, and that select: golden files, compiled for their
architecture without a warning."""

from __future__ import annotations

import os

import pytest
from fuzz.fragments import CATALOGUE, ampere, blackwell
from support.cards.nvrtc import compiled
from support.paths import TESTS

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.machine.target import Target
from autosched.tensorize import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.space.request import request
from autosched.tiling.variants.conditional import candidates_of

GOLDEN = TESTS / "golden"
WARPS = {"warps_i": 2, "reg_i": 2, "reg_j": 2, "stage_a": "global", "stage_b": "global", "split": 1}
SCALED = """
def mm(A: {t}[64, {k}], S: {s}[64, {k} // {g}], B: {t}[32, {k}], T: {s}[32, {k} // {g}], C: f32[64, 32]):
    assume(0 <= S)
    assume(0 <= T)
    for i, j in grid(64, 32):
        C[i, j] = 0
        for {loops}:
            C[i, j] += (f32(A[i, {p}]) * f32(S[i, {h}])) * (f32(B[j, {p}]) * f32(T[j, {h}]))
"""
SPARSE = """
def mm(A: {t}[64, 64], E: u8[64, 64], B: {t}[32, 32, 4], C: {c}[64, 32]):
    assume(E <= 3)
    assume(distinct(E, 2))
    for i, j in grid(64, 32):
        C[i, j] = 0
        for q in range(64):
            C[i, j] += {c}(A[i, q]) * {c}(B[j, q // 2, 0] if E[i, q] & 3 == 0 else B[j, q // 2, 1] if E[i, q] & 3 == 1
                                          else B[j, q // 2, 2] if E[i, q] & 3 == 2 else B[j, q // 2, 3])
"""
MX = {"loops": "h, q in grid(4, 32)", "p": "32 * h + q", "h": "h", "k": 128, "g": 32, "t": "e4m3", "s": "e8m0"}
NV = {"loops": "p in range(128)", "p": "p", "h": "p // 16", "k": 128, "g": 16, "t": "e2m1", "s": "e4m3"}
CASES = {
    "mxfp8": (SCALED.format(**MX), "cuda/mma.m16n8k32.e4m3.e4m3.f32.mxf8f6f4", blackwell),
    "nvfp4": (SCALED.format(**NV), "cuda/mma.m16n8k64.e2m1.e2m1.f32.nvf4", blackwell),
    "sparse": (SPARSE.format(t="bf16", c="f32"), "cuda/mma.sp.m16n8k32.bf16.bf16.f32", ampere),
    "sparse_short": (SPARSE.format(t="f16", c="f32"), "cuda/mma.sp.m16n8k16.f16.f16.f32", ampere),
    "sparse_bytes": (SPARSE.format(t="u8", c="s32"), "cuda/mma.sp.m16n8k32.u8.u8.s32", ampere),
    "sparse_bytes_long": (SPARSE.format(t="s8", c="s32"), "cuda/mma.sp.m16n8k64.s8.s8.s32", ampere),
}


def printed(text: str, name: str, target: Target) -> CudaSource:
    program, intrinsic = parse(text), CATALOGUE[name].on(target.features)
    plan, *_ = make_plans(program, target, candidates_of(match(program, [intrinsic])), 1)
    row = request(plan.space, WARPS).row
    assert row is not None
    return print_cuda(lower(plan, plan.space.schedule(row)), target)


@pytest.mark.parametrize("name", CASES)
def test_golden_fragments(name: str) -> None:
    """The golden files change with `AUTOSCHED_GOLDEN=update pytest`; look at the difference before committing it."""
    text, intrinsic, target = CASES[name]
    source = printed(text, intrinsic, target())
    path = GOLDEN / f"cuda_{name}.cu"
    if os.environ.get("AUTOSCHED_GOLDEN") == "update":
        path.write_text(source.text, encoding="utf-8")
    assert source.text == path.read_text(encoding="utf-8")
    found = compiled(source)
    assert not found.warnings
    assert not any(k.spills for k in found.kernels.values())
