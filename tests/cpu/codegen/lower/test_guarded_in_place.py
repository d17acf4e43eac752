"""Registers that change in place where a condition on rows and columns holds: what they held is read first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import expect
from support.plans import leading, machine, plans_of

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.host import host_features

TEXT = """
def f(A: f32[5, 3], B: f32[3, 44], C: f32[5, 5, 40]):
    for t in range(40):
        for x in range(5):
            for e in range(x + 1):
                for p in range(3):
                    C[x, e, t] += A[x, p] * B[p, t + e]
    for t in range(40):
        for x in range(5):
            for e in range(x + 1):
                C[x, e, t] = max(C[x, e, t], 0.0)
"""


def kernels(program: Program) -> list[Kernel]:
    here = machine(host_features(), registers=16, vector_bytes=32)
    (plan,) = (p for p in leading(plans_of(program, here), 1) if p.tensor_parts and p.tensor_parts[0].epilogue)
    rows = plan.space.sample(8, np.random.default_rng(0))
    return [lower(plan, plan.space.schedule(int(row))) for row in rows]


@pytest.mark.x86
def test_machine_code() -> None:
    if "fma" not in host_features():
        pytest.skip("needs FMA")
    program = parse(TEXT, filename="f.py")
    check_machine_code(kernels(program), expect(program))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
@pytest.mark.x86
def test_exported_c(tmp_path: Path) -> None:
    if "fma" not in host_features():
        pytest.skip("needs FMA")
    program = parse(TEXT, filename="f.py")
    expected = expect(program)
    check_exported_c([(kernel, expected) for kernel in kernels(program)], tmp_path)
