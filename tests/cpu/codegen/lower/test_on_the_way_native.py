"""Operands computed on the way, as machine code and as exported C: both agree with the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import expect
from support.match.examples import examples
from support.plans import this_machine
from support.programs.computed import COMPUTED, computed_plans, computed_texts

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.host import host_features


def kernels(program: Program, count: int, threads: int = 1) -> list[Kernel]:
    """Kernels of rows at random of the first plans of the program."""
    made = []
    for plan in computed_plans(program, this_machine(), threads)[:4]:
        ids = plan.space.sample(count, np.random.default_rng(3))
        made += [lower(plan, plan.space.schedule(int(row))) for row in ids]
    return made


@pytest.mark.sampled("gathered", "one_tile", "masked", "converted")
@pytest.mark.x86
@pytest.mark.parametrize("name", COMPUTED)
def test_machine_code(name: str) -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    made = kernels(COMPUTED[name], 6)
    assert made
    check_machine_code(made, expect(COMPUTED[name]))


@pytest.mark.slow
@pytest.mark.x86
@pytest.mark.parametrize("name", ["normalised", "one_tile", "rows"])
def test_threads_share_what_is_packed(name: str) -> None:
    """Registers that hold what stays along the depth are each thread's own."""
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    made = [k for k in kernels(COMPUTED[name], 6, threads=2) if k.threads == 2]
    assert made
    check_machine_code(made, expect(COMPUTED[name]))


@pytest.mark.slow
@pytest.mark.x86
@examples(15)
@given(computed_texts(), st.integers(1, 2), st.integers(0, 99))
def test_machine_code_of_random_expressions(text: str, threads: int, seed: int) -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = parse(text, filename="f.py")
    made = kernels(program, 2, threads)
    assume(made)
    check_machine_code(made, expect(program, seed))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize(
    "names",
    [("converted",), pytest.param(tuple(COMPUTED), marks=pytest.mark.slow)],
    ids=["one program", "all programs"],
)
def test_exported_c(names: tuple[str, ...], tmp_path: Path) -> None:
    made = [(k, expect(COMPUTED[name])) for name in names for k in kernels(COMPUTED[name], 2)]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path, "-fopenmp")


MASKED_GROUPS = """
def f(X: f32[m, k], V: f32[k, n], S: f32[2, n], Y: f32[m, n], *, m=2, k=6, n=16):
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            if p <= i + 2:
                Y[i, j] += X[i, p] * (V[p, j] * S[p // 4, j])
"""


@pytest.mark.x86
def test_rows_that_end_within_a_group() -> None:
    """What stays for a group is no register that some rows' groups fill."""
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = parse(MASKED_GROUPS)
    check_machine_code(kernels(program, 6), expect(program))
