"""Tile loops as machine code and as exported C: both agree with the oracle, on rows without a finite element, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.match.agreement import expect
from support.plans import this_machine
from support.programs.one_pass import ONE_PASS, one_pass_plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse, run
from autosched.machine.host import host_features

pytestmark = [pytest.mark.slow, pytest.mark.x86]

SCORES = """
def attention(S: f32[n, l], V: f32[l, d], O: f32[n, d], *, n=12, l=40, d=16):
    M: f32[n]
    Z: f32[n]
    A: f32[n, d]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], S[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(S[i, j] - M[i])
    for i, e in grid(n, d):
        A[i, e] = 0
        for j in range(l):
            A[i, e] += exp(S[i, j] - M[i]) * V[j, e]
    for i, e in grid(n, d):
        O[i, e] = A[i, e] / Z[i]
"""


def kernels(name: str, count: int, threads: int = 1) -> list[Kernel]:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    made = []
    for plan in one_pass_plans(ONE_PASS[name], this_machine(), threads):
        ids = plan.space.sample(count, np.random.default_rng(len(name)))
        made += [lower(plan, plan.space.schedule(int(row))) for row in ids]
    assert made
    return made


@pytest.mark.parametrize("name", ONE_PASS)
def test_machine_code(name: str) -> None:
    check_machine_code(kernels(name, 6, threads=2), expect(ONE_PASS[name]))


@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    names = ("even", "causal", "decode")
    made = [(k, expect(ONE_PASS[name])) for name in names for k in kernels(name, 2)]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path, "-fopenmp")


def test_rows_that_hurt() -> None:
    """All minus infinity, one finite element, infinities, NaN, numbers that overflow when they are added up."""
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = parse(SCORES, filename="f.py")
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(12, 40)).astype("f4") * 9
    scores[0] = -np.inf
    scores[1] = -np.inf
    scores[1, 37] = 2.5
    scores[2, 20] = np.inf
    scores[3, 39] = np.nan
    scores[4] = 3e38
    scores[5, ::2] = -3e38
    values = rng.normal(size=(40, 16)).astype("f4")
    values[7, 3] = 3e38
    values[8, 3] = 3e38
    with np.errstate(all="ignore"):
        want = run(program, {"S": scores, "V": values})["O"]
    (plan, *_) = one_pass_plans(program, this_machine(), sizes=((5, 16),))
    for row in plan.space.sample(4, np.random.default_rng(0)).tolist():
        found = compiled(lower(plan, plan.space.schedule(row)))(S=scores, V=values)
        assert np.array_equal(np.isnan(found), np.isnan(want))
        assert np.allclose(found, want, rtol=1e-4, atol=1e-5, equal_nan=True)
