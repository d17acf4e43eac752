"""Scalar stages as machine code and as exported C: reductions, rows of stages and formulas agree with the oracle."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import COMPILER, missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.match.agreement import expect
from support.plans import covering_rows, machine
from support.programs.scalar_programs import functions, program, scalar_plans

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse, workload
from autosched.ir.formula import evaluate_formula
from autosched.machine.host import host_features
from autosched.tensorize.check.function_error import arguments

HERE = machine(host_features())
PROGRAMS = {
    "rows": program("rows"),
    "down": program("down", k=21, n=150),
    "gemv_bf16": workload("gemv", m=9, k=75, a="bf16", b="bf16"),
    "gemv_u8s8": workload("gemv", m=9, k=75, a="u8", b="s8", acc="s32"),
    "layer_norm": workload("layer_norm", m=5, n=37),
}


@pytest.mark.sampled(1)
@pytest.mark.x86
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code(name: str, threads: int) -> None:
    if "fma" not in host_features():
        pytest.skip("needs FMA")
    wanted = PROGRAMS[name]
    expected = expect(wanted)
    for plan in scalar_plans(wanted, HERE, threads):
        for row in covering_rows(plan, extra=3):
            check_machine_code([lower(plan, plan.space.schedule(row))], expected)


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made = []
    for wanted in PROGRAMS.values():
        plan = scalar_plans(wanted, HERE, 2)[0]
        for n, row in enumerate(covering_rows(plan, extra=0)):
            kernel = lower(plan, plan.space.schedule(row))
            if n < 6 and not missing_features(kernel):
                made.append((kernel, expect(wanted)))
    check_exported_c(made, tmp_path, "-fopenmp")


@needs_compiler
@pytest.mark.compiler
@pytest.mark.x86
def test_formulas_of_several_vectors_are_vector_instructions_in_c(tmp_path: Path) -> None:
    """GCC computed some of four polynomials element by element, as long as it was left to find the vectors."""
    plan = scalar_plans(workload("elementwise", op="gelu", m=4, n=64), machine(frozenset({"fma", "avx512f"})))[0]
    row = plan.space.row_of({"vector": 16, "unroll": 4, "math": 1, "threads": 1})
    code = print_c(lower(plan, plan.space.schedule(row)))
    (tmp_path / f"{code.name}.h").write_text(code.header)
    (tmp_path / "gelu.c").write_text(code.source)
    built = ["-O3", "-mavx512f", "-mfma", "-ffp-contract=off", "-S", "gelu.c", "-o", "gelu.s"]
    assert COMPILER is not None
    subprocess.run([COMPILER, *built], cwd=tmp_path, check=True, capture_output=True)
    text = (tmp_path / "gelu.s").read_text()
    assert re.search(r"vfn?madd\d+ps", text)
    assert not re.search(r"vfn?madd\d+ss", text)


@pytest.mark.x86
@pytest.mark.parametrize("formula", functions().formulas.values(), ids=lambda f: f.function)
def test_formulas_have_the_same_bits_everywhere(formula) -> None:
    """The steps in numpy, in the kernel interpreter and in machine code, on special values and random bits."""
    if "fma" not in host_features():
        pytest.skip("needs FMA")
    x = next(arguments(np.random.default_rng(0), exhaustive=False))[:3001].copy()
    body = f"    for i in range(n):\n        Y[i] = {formula.function}(X[i])\n"
    text = f"def f(X: f32[n], Y: f32[n], *, n={len(x)}):\n{body}"
    plan = scalar_plans(parse(text, filename="f.py"), HERE)[0]
    with np.errstate(all="ignore"):
        wanted = np.asarray(evaluate_formula(formula, x))
    for width in (1, 4, 16):
        row = plan.space.row_of({"vector": width, "unroll": 1, "math": 1, "threads": 1})
        kernel = lower(plan, plan.space.schedule(row))
        found = compiled(kernel)(X=x)
        np.testing.assert_array_equal(found.view(np.uint32), _one_nan(wanted, found).view(np.uint32))
    inner = run_kernel(kernel, {"X": x})["Y"]
    np.testing.assert_array_equal(inner, wanted)


def _one_nan(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """`wanted` with the payloads of `found` where both are NaN."""
    return np.where(np.isnan(wanted) & np.isnan(found), found, wanted).astype(np.float32)
