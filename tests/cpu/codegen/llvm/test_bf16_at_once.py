"""Rounding to bf16 by the instruction where a kernel has it: the bits of the rounding in integers, subnormals too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compiled.llvm_kernels import needs, run
from support.plans import machine, plans_of
from support.programs.value_cases import kernel_of, read

from autosched.codegen.llvm import statements
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Cast

ROUNDED = """
def rounded(A: bf16[m, k], B: bf16[k, n], Y: bf16[m, n], *, m=8, n=32, k=8):
    S: f32[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += f32(A[i, p]) * f32(B[p, j])
    for i, j in grid(m, n):
        Y[i, j] = bf16(S[i, j])
"""
INSTRUCTION = "llvm.x86.avx512bf16.cvtneps2bf16.512"


def numbers() -> Any:
    """Bits of every exponent: random ones, ties, the ends of a fraction, NaN of both kinds, and alone a subnormal."""
    rng = np.random.default_rng(0)
    signs, exponents = np.meshgrid(np.arange(2, dtype=np.uint32) << 31, np.arange(256, dtype=np.uint32) << 23)
    ends = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x17FFF, 0x18000, 0x18001, 0x3FFFFF, 0x400000, 0x7F8000, 0x7FFFFF]
    fractions = np.concatenate([np.array(ends, np.uint32), rng.integers(0, 1 << 23, 51, dtype=np.uint32)])
    bits = ((signs | exponents).reshape(-1, 1) | fractions).reshape(-1)
    alone = np.full(16 * 16, 0x3F800000, np.uint32)
    alone[::17] = 1 << np.arange(16)
    return np.concatenate([bits, alone, rng.permutation(bits)]).view(np.float32)


@needs("avx512bf16", "avx512dq")
def test_the_instruction_gives_the_bits_of_the_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers()
    kernel = kernel_of("f", {"z": Cast(read("x", DTYPES["f32"]), DTYPES["bf16"])}, {"x": DTYPES["f32"]}, x.size, 16)
    assert INSTRUCTION not in print_llvm(kernel)
    wanted = run(kernel, {"x": x})["z"].view(np.uint16)
    monkeypatch.setattr(statements, "to_bf16", lambda kernel: 16)
    assert INSTRUCTION in print_llvm(kernel)
    np.testing.assert_array_equal(run(kernel, {"x": x})["z"].view(np.uint16), wanted)


@pytest.mark.parametrize(("t", "rounds"), [("bf16", True), ("f32", False)])
def test_kernels_that_issue_such_instructions_round_by_one(t: str, rounds: bool) -> None:
    plans = plans_of(parse(ROUNDED.replace("A: bf16", f"A: {t}").replace("B: bf16", f"B: {t}")), machine())
    plan = next(p for p in plans if p.tensor_parts and p.intrinsics[0].endswith(".zmm"))
    assert ("bf16" in plan.intrinsics[0]) == rounds
    ids = plan.space.sample(200, np.random.default_rng(0))
    texts = (print_llvm(lower(plan, plan.space.schedule(int(row)))) for row in ids[:20])
    assert any(INSTRUCTION in text for text in texts) == rounds
