"""A stage of rows that the next one adds up is computed on the way, where each element is taken where it is made."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import machine
from support.programs.scalar_programs import scalar_plans

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, Kernel, statements
from autosched.ir import parse, random_inputs, run

WIDE = machine(frozenset({"fma"}), vector_bytes=64)
TEXT = """
def f(X: f32[m, n], Y: f32[m, n], Z: f32[m, n], *, m=3, n=37):
    S: f32[m]
    for i in range(m):
        S[i] = 0
        for j in range(n):
            Y[i, j] = X[i, j] * X[i, j] + 1
        for j in range({low}, n):
            S[i] += {term}
        for j in range(n):
            Z[i, j] = Y[i, j] / S[i]
"""


def kernel_of(low: str, term: str, width: int) -> Kernel:
    program = parse(TEXT.format(low=low, term=term), filename="f.py")
    (plan,) = (p for p in scalar_plans(program, WIDE) if "rows" in p.name)
    names = {d.name.split(".")[-1]: d.name for d in plan.space.decisions}
    return lower(plan, plan.space.schedule(plan.space.row_of({names["vector"]: width, names["unroll"]: 2})))


def inner_loops(kernel: Kernel) -> int:
    return sum(isinstance(s, For) and s.var.startswith("j") for s in statements(kernel.main.body))


@pytest.mark.parametrize(
    ("low", "term", "fed"),
    [
        ("0", "Y[i, j] * X[i, j]", True),
        ("0", "Y[i, j] - Y[i, 0]", False),  # another element too
        ("0", "Y[i, n - 1 - j]", False),
        ("1", "Y[i, j]", False),  # fewer elements
        ("0", "X[i, j]", False),  # none
    ],
)
def test_where_a_stage_feeds_the_next(low: str, term: str, fed: bool) -> None:
    kernel = kernel_of(low, term, 16)
    assert ("Y_now" in kernel.buffers) == fed
    arrays = random_inputs(kernel.program, np.random.default_rng(0))
    found, wanted = run_kernel(kernel, arrays), run(kernel.program, arrays)
    for name in ("Y", "Z"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5)


def test_a_stage_without_vectors_is_computed_by_itself() -> None:
    kernel = kernel_of("0", "Y[i, j]", 1)
    assert "Y_now" not in kernel.buffers
    assert inner_loops(kernel) == 3
