"""Of the whole catalogue, products of 2:4 sparse data and of blocks with scales are planned first on the instructions
made for them, at every level of numerics."""

from __future__ import annotations

import pytest
from fuzz.fragments import ampere, blackwell

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import planned

SCALED = """
def mm(A: {t}[432, 1024], S: {s}[432, 1024 // {g}], B: {t}[304, 1024], T: {s}[304, 1024 // {g}], C: f32[432, 304]):
    assume(0 <= S)
    assume(0 <= T)
    for i, j in grid(432, 304):
        C[i, j] = 0
        for p in range(1024):
            C[i, j] += (f32(A[i, p]) * f32(S[i, p // {g}])) * (f32(B[j, p]) * f32(T[j, p // {g}]))
"""
BLOCKS = {"mxf4": ("e2m1", "e8m0", 32), "nvf4": ("e2m1", "e4m3", 16), "mxf8f6f4": ("e4m3", "e8m0", 32)}


def first_instruction(program: Program, target: Target, numerics: str) -> str:
    plan = planned(TuneRequest(program, target, device="simulator", numerics=numerics)).plans[0]
    return plan.mappings[0].intrinsic.name


@pytest.mark.parametrize("numerics", ["reassociated", "real"])
@pytest.mark.parametrize("t", ["f16", "bf16", "s8", "u8"])
def test_sparse_products_select(t: str, numerics: str) -> None:
    program = workload("matmul_sparse", m=432, n=304, k=1024, t=t)
    assert ".sp." in first_instruction(program, ampere(), numerics)


@pytest.mark.parametrize("numerics", ["reassociated", "real"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_have_their_scales(kind: str, numerics: str) -> None:
    t, s, g = BLOCKS[kind]
    program = parse(SCALED.format(t=t, s=s, g=g))
    assert first_instruction(program, blackwell(), numerics).endswith(kind)
