"""Copies transposed in registers, as machine code and as exported C: stages that transpose, panels of K-major operands
of 32, 16 and 8 bits, sizes that no register divides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import Expected, expect
from support.plans import plans_of, this_machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.ir.program import Program

TRANSPOSE = """
def transpose(A: t[m, n], B: t[n, m], *, m=37, n=53, t="f32"):
    for i, j in grid(n, m):
        B[i, j] = A[j, i]
"""
PRODUCT = """
def product(A: a[m, k], B: b[n, k], C: c[m, n], *, m=9, n=40, k=75, a="f32", b="f32", c="f32"):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += c(A[i, p]) * c(B[j, p])
"""
PROGRAMS: dict[str, Program] = {
    **{f"transpose {t}": parse(TRANSPOSE, sizes={"t": t}) for t in ("f32", "bf16", "s8", "f64")},
    "transpose narrow": parse(TRANSPOSE, sizes={"m": 16, "n": 5}),
    "f32": parse(PRODUCT),
    "bf16": parse(PRODUCT, sizes={"a": "bf16", "b": "bf16"}),
    "bytes": parse(PRODUCT, sizes={"a": "u8", "b": "s8", "c": "s32"}),
}


def kernels(name: str) -> tuple[list[Kernel], Expected]:
    """Some kernels of a program that transpose, of its first plans."""
    program = PROGRAMS[name]
    found: list[Kernel] = []
    for plan in plans_of(program, this_machine())[:3]:
        ids = plan.space.sample(40, np.random.default_rng(0))
        lowered = [lower(plan, plan.space.schedule(int(row))) for row in ids]
        found += [k for k in lowered if "turned" in k.buffers][:4]
    return found, expect(program)


@pytest.mark.sampled("transpose f32", "transpose s8", "transpose narrow", "f32")
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code(name: str) -> None:
    made, expected = kernels(name)
    assert made or name == "transpose narrow"
    if made:
        check_machine_code(made, expected)


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_exported_c(name: str, tmp_path: Path) -> None:
    made, expected = kernels(name)
    check_exported_c([(k, expected) for k in made if not missing_features(k)], tmp_path, "-fopenmp")
