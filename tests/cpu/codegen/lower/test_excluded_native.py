"""What a guard excludes does not reach the sums of machine code and of exported C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.plans import TRIANGLE, leading, plans_of, this_machine
from support.programs.special import Strict, spoiled

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse

SUM = """
def f(A: f32[37, 37], x: f32[37], y: f32[37]):
    for i in range(37):
        y[i] = 0
        for j in range(37):
            if j <= i:
                y[i] += A[i, j] * x[j]
"""
SPACED = """
def f(A: f32[19, 30], B: f32[30, 40], C: f32[19, 40]):
    for i, j in grid(19, 40):
        for k in range(30):
            if k != 3 and k <= i + j and j > 4:
                C[i, j] += A[i, k] * B[k, j]
"""
CASES = {
    "sum": (SUM, [("x", (20,), np.nan), ("A", (3, 30), np.inf)]),
    "triangle": (TRIANGLE, [("B", (5, 3), np.nan), ("A", (3, 7), np.nan)]),
    "spaced": (SPACED, [("B", (25, 7), np.inf), ("B", (3, 9), np.nan), ("A", (5, 3), np.nan)]),
}


def made(name: str) -> tuple[list[Kernel], Strict]:
    text, places = CASES[name]
    program = parse(text, filename="f.py")
    kernels = []
    for plan in leading(plans_of(program, this_machine()), 1):
        rows = plan.space.sample(3, np.random.default_rng(len(text)))
        kernels += [lower(plan, plan.space.schedule(int(row))) for row in rows]
    return kernels, spoiled(program, places)


@pytest.mark.parametrize("name", CASES)
def test_machine_code(name: str) -> None:
    check_machine_code(*made(name))


@needs_compiler
@pytest.mark.slow
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    check_exported_c([(kernel, expected) for ks, expected in map(made, CASES) for kernel in ks], tmp_path)
