"""Exported C of loops that never run, and of statements that no iteration reaches, names every variable that it
declares: GCC and Clang warn of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c
from support.match.agreement import expect
from support.plans import plans_of, this_machine

from autosched import ir
from autosched.codegen.lower import lower

TEXT = """
def f(A: {t}[{m}, {k}], B: {t}[{k}, {n}], C: {acc}[{m}, {n}]):
    for i, j in grid({m}, {n}):
        {init}
        for p in range({bounds}):
            if {guard}:
                C[i, j] += {acc}(A[i, p]) * {acc}(B[p, j])
"""
F32, S8 = {"t": "f32", "acc": "f32"}, {"t": "s8", "acc": "s32"}
ZERO, NONE = "C[i, j] = 0", "C[i, j] += 1"
CASES = {
    "nobody's products": dict(F32, m=17, k=1, n=33, init=ZERO, bounds="0, 1", guard="i + j > 100"),
    "narrow": dict(S8, m=17, k=8, n=33, init=ZERO, bounds="0, 8", guard="i + j > 100"),
    "dependent bounds": dict(F32, m=9, k=16, n=16, init=NONE, bounds="0, i - j", guard="i + j > 100"),
    "dependent bounds, narrow": dict(S8, m=4, k=5, n=16, init=NONE, bounds="j, 5", guard="i + j > 100"),
    "no iteration": dict(F32, m=9, k=5, n=16, init=ZERO, bounds="i + 5, 5", guard="p >= 0"),
}


@pytest.mark.sampled("1-nobody's products", "1-dependent bounds", "2-dependent bounds, narrow", "2-no iteration")
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_no_variable_is_unused(name: str, threads: int, tmp_path: Path) -> None:
    program = ir.parse(TEXT.format(**CASES[name]))
    expected = expect(program)
    made = []
    for plan in plans_of(program, this_machine(), threads)[:6]:
        rows = plan.space.sample(3, np.random.default_rng(0))
        made += [lower(plan, plan.space.schedule(int(row))) for row in rows]
    check_exported_c([(k, expected) for k in made if not missing_features(k)], tmp_path)
