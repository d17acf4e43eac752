"""Programs that are no plain products, on the emulated card: a random row of each leading plan, and what each found."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.hand_kernels import needs_compiler
from pure.gpu_plans import H200
from support.agreement import expect

from autosched.codegen.check import check_kernel
from autosched.codegen.cuda.emulation import run_printed
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.search.request import TuneRequest
from autosched.search.tune import plans_of

pytestmark = [needs_compiler, pytest.mark.compiler]
TEXTS = {
    # Subscripts that are data were cast to a type that device code does not know.
    "gathered rows": """
def f(E: f32[11, n], I: s32[m], Y: f32[m, n], S: f32[m], *, m=9, n=8):
    assume(0 <= I <= 10)
    for i, j in grid(m, n):
        Y[i, j] = E[I[i], j] + 1.0
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += Y[i, j]
""",
    # Bounds that depend on other axes have no extent, which the plans with turned operands asked for.
    "triangle of bytes": """
def f(A: s8[m, m], B: s8[m, n], C: s32[m, n], *, m=12, n=34):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(i, m):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
""",
    # A sum of one term has no depth to be cut into slices.
    "one term": """
def f(A: f32[m, 1], B: f32[1, n], C: f32[m, n], *, m=9, n=10):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(1):
            C[i, j] += A[i, p] * B[p, j]
""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_rows_compute_the_program(name: str) -> None:
    program = parse(TEXTS[name])
    expected, rng = expect(program), np.random.default_rng(3)
    _, plans = plans_of(TuneRequest(program, H200, device="simulator"))
    for plan in plans[:2]:
        kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, rng)[0])))
        check_kernel(kernel)
        wrong = expected.difference(run_printed(kernel, H200, expected.arrays, expected.scalars))
        assert wrong is None, f"{plan.name}\n{kernel.schedule}\n{wrong}"
