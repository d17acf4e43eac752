"""Plans with instructions that overwrite their target beside adapted products, and the rank of vector code."""

from __future__ import annotations

import pytest
from support.match.computes import CATALOGUE
from support.plans import machine

from autosched.ir import parse
from autosched.search.tuning.tune import usable
from autosched.tensorize import match
from autosched.tiling.analysis.dependence import analyse
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.planner.rank import scalar_cycles
from autosched.tiling.plans.scalar_parts import scalar_part
from autosched.tiling.steps import StepNames
from autosched.tiling.variants.adapted import adapted_programs

TARGET = machine(frozenset(["avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512_vnni"]))
SIGNED = """
def f(A: s8[64, 64], B: s8[64, 64], D: u8[64, 64], F: u8[64, 64], C: s32[64, 64], E: u8[64, 64]):
    for i, j in grid(64, 64):
        C[i, j] = 0
        for k in range(64):
            C[i, j] += s32(A[i, k]) * s32(B[k, j])
    for i, j in grid(64, 64):
        E[i, j] = u8((u16(D[i, j]) + u16(F[i, j]) + 1) >> 1)
"""


def test_adapted_programs_are_asked_about_elementwise_stages() -> None:
    """Two signed factors fit an instruction for unsigned ones with an offset; the average beside them is as it was."""
    program, names = parse(SIGNED), ["x86/vpdpbusd.zmm", "x86/vpavgb.zmm"]
    intrinsics = [CATALOGUE[n] for n in names]
    plain, *variants = adapted_programs(program, match(program, intrinsics), intrinsics, "reassociated")
    assert not plain.adapters
    assert variants
    for variant in variants:
        fitting = {(m.stage, m.intrinsic.name) for m in variant.matches if m.mappings}
        assert fitting == {("C", names[0]), ("E", names[1])}, variant.adapters


def test_a_plan_has_both() -> None:
    found = plan_program(parse(SIGNED), TARGET, CATALOGUE, usable(CATALOGUE, TARGET, "cpu"))
    assert any(
        {t.nest.intrinsic.accumulates for t in p.tensor_parts} == {True, False} and "offset-binary" in p.name
        for p in found.plans
    )


@pytest.mark.parametrize(("dtype", "bytes_"), [("u8", 1), ("s16", 2), ("f16", 4), ("f32", 4), ("f64", 8)])
def test_vector_code_takes_as_many_elements_as_a_vector_holds(dtype: str, bytes_: int) -> None:
    """64 bytes of the widest element a cycle; floats of fewer bits are computed in f32."""
    program = parse(f"def f(A: {dtype}[640], C: {dtype}[640]):\n for i in range(640):\n  C[i] = max(A[i], 1)\n")
    stage = program.stages[0]
    assert scalar_cycles(scalar_part(program, stage, StepNames(), analyse(program))) == 10 * bytes_
