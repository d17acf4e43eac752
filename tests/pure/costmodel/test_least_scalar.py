"""The lower bound of stages that no instruction takes: their arithmetic, not nothing."""

from __future__ import annotations

import pytest

from autosched.costmodel.analytic.cpu.least_scalar import least_cycles
from autosched.ir import parse
from autosched.machine.catalogue import load_target

HEAD = "def f(A: f32[n, m], B: f32[n, m], Y: f32[n], *, n=16, m=32):\n    for i in range(n):\n        Y[i] = 0\n"
LOOP = "        for j in range(m):\n            "


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        (LOOP + "Y[i] += A[i, j] - B[i, j]", 2),
        (LOOP + "Y[i] += A[i, j]", 1),
        (LOOP + "Y[i] += exp(A[i, j] - B[i, j])", 3),
        (LOOP + "Y[i] += (A[i, j] - B[i, j]) * (A[i, j] - B[i, j])", 2),  # one difference; product and sum are one
        (LOOP + "Y[i] += A[i, j] * sqrt(B[i, 0])", 1),  # so is what depends on i alone
        (LOOP + "Y[i] += A[i, j] if A[i, j] > B[i, j] else 0", 0),  # nothing is added where nothing is chosen
        (LOOP + "if A[i, j] > 0:\n                Y[i] += A[i, j]", 0),
        ("        for j in range(i):\n            Y[i] += A[i, j]", 0),
    ],
)
def test_instructions_that_every_point_needs(text: str, instructions: int) -> None:
    target = load_target("x86-avx512")
    stage = parse(HEAD + text).stages[-1]
    vectors = 16 * 32 * instructions / (target.limits["vector_bytes"] / 4)
    assert least_cycles(stage, {}, target) == vectors / 2  # two a cycle
