"""Exported kernels with their self-tests: built as the header says, under sanitizers, on odd shapes."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compiled.c_build import WARNINGS, missing_features
from support.programs.mutants import MUTANTS, Mutant

from autosched.api import catalogue
from autosched.codegen.c import print_c
from autosched.codegen.c.export.self_test import MULTIPLIER, self_test
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse, workload
from autosched.machine.catalogue import load_target
from autosched.machine.detect import detect
from autosched.search.request import TuneRequest
from autosched.search.tuning.baseline import literal_plan
from autosched.search.tuning.tune import plans_of

COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
pytestmark = [pytest.mark.compiler, pytest.mark.skipif(not COMPILERS, reason="no gcc or clang on this machine")]
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PROGRAMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("matmul_bias_gelu", {"m": 5, "n": 37, "k": 19, "gelu": "erf"}),
    ("matmul_requant", {"m": 5, "n": 37, "k": 19}),
    ("matmul", {"m": 3, "n": 21, "k": 13, "t": "bf16"}),
    ("softmax", {"m": 3, "n": 77}),
    ("layer_norm", {"m": 3, "n": 45}),
    ("conv2d_bias_relu", {"n": 1, "h": 5, "w": 7, "ci": 3, "co": 19, "kh": 3, "kw": 3, "pad": 1, "residual": 1}),
    ("depthwise_conv2d", {"h": 7, "w": 19, "c": 3, "layout": "nchw"}),
    ("depthwise_conv2d", {"h": 7, "w": 19, "c": 3, "layout": "nchw", "a": "u8", "b": "s8", "acc": "s32"}),
    ("depthwise_conv2d", {"h": 5, "w": 7, "c": 35, "a": "u8", "b": "s8", "acc": "s32"}),
    ("attention_decode", {"b": 2, "h": 4, "l": 37, "d": 16}),
    *((f"matmul_{name}", {"m": 1, "n": 37, "k": 32, "g": 8}) for name in ("int4", "fp8", "fp4", "fp4_packed")),
)


def kernels(name: str, sizes: dict[str, Any], seed: int) -> list[Kernel]:
    """Of some random rows of a plan that tuning would search, the one with the shortest code: sanitizers take long."""
    return _kernels(name, tuple(sizes.items()), seed)


@cache
def _kernels(name: str, sizes: tuple[tuple[str, Any], ...], seed: int) -> list[Kernel]:
    """The same for each compiler."""
    request = TuneRequest(workload(name, **dict(sizes)), detect(), device="cpu", catalogue=catalogue())
    rng = np.random.default_rng(seed)
    plan = plans_of(request)[1][0]
    found = [lower(plan, plan.space.schedule(int(row))) for row in plan.space.sample(6, rng)]
    usable = [replace(k, name=f"{name}_0") for k in found if not missing_features(k)]
    return sorted(usable, key=lambda k: len(print_c(k).source))[:1]


def run(folder: Path, name: str, compiler: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [compiler, *flags, *WARNINGS, f"{name}_test.c", f"{name}.c", "-o", f"{name}_test", "-lm"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return subprocess.run([f"./{name}_test"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("name", "sizes"), PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_right_and_clean(name: str, sizes: dict[str, Any], compiler: str, tmp_path: Path) -> None:
    for kernel in kernels(name, sizes, 0):
        code = print_c(kernel)
        text = self_test(kernel, code, workload(name, **sizes))
        for ending, part in ((".h", code.header), (".c", code.source), ("_test.c", text)):
            (tmp_path / f"{code.name}{ending}").write_text(part)
        done = run(tmp_path, code.name, compiler, *code.flags.split(), *SANITIZERS)
        assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr[-2000:]


def test_wrong_numbers_fail(tmp_path: Path) -> None:
    """Other inputs than those that the expected results were computed from."""
    kernel = kernels("matmul_requant", {"m": 5, "n": 37, "k": 19}, 0)[0]
    code = print_c(kernel)
    text = self_test(kernel, code, workload("matmul_requant", m=5, n=37, k=19))
    assert str(MULTIPLIER) in text
    for ending, part in ((".h", code.header), (".c", code.source), ("_test.c", text.replace(str(MULTIPLIER), "5"))):
        (tmp_path / f"{code.name}{ending}").write_text(part)
    done = run(tmp_path, code.name, COMPILERS[0], *code.flags.split())
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "not" in done.stdout


def test_wrong_integers_are_printed_as_integers(tmp_path: Path) -> None:
    text = "def f(A: s32[n], Y: s64[n], U: u64[n], *, n=3):\n    for i in range(n):\n"
    text += "        Y[i] = s64(A[i]) * 4000000007\n"
    program = parse(text + "        U[i] = u64(18446744073709551615) - u64(i)\n")
    plan = literal_plan(program, load_target("x86-avx2"))
    kernel = lower(plan, plan.space.schedule(0))
    code = print_c(kernel)
    right = self_test(kernel, code, program)
    wrong = right.replace(str(MULTIPLIER), "5").replace("UINT64_C(18446744073709551614)", "UINT64_C(1)")
    for given, status in ((right, 0), (wrong, 1)):
        for ending, part in ((".h", code.header), (".c", code.source), ("_test.c", given)):
            (tmp_path / f"{code.name}{ending}").write_text(part)
        done = run(tmp_path, code.name, COMPILERS[0], *code.flags.split())
        assert done.returncode == status, done.stdout
    *lines, last = done.stdout.splitlines()
    assert last == "FAILED"
    assert "U[1] is 18446744073709551614, not 1" in lines
    assert all(re.fullmatch(r"(where .*: )?[YU]\[\d\] is -?\d+, not -?\d+", line) for line in lines), lines


@pytest.mark.parametrize("name", ["sum clamped at 2^24", "sign of a scalar", "a length that is a scalar", "no epsilon",
                                  "entropy of NaN", "step at zero", "NaN of one output"])  # fmt: skip
def test_kernels_with_a_mistake_fail(name: str, tmp_path: Path) -> None:
    """Data of all sizes, several values of scalars, NaN where the program has it."""
    known = {m.name: m for m in MUTANTS} | {NOT_A_NUMBER.name: NOT_A_NUMBER}
    mutant = known[name]
    for program, said in ((mutant.right, "ok\n"), (mutant.wrong, "FAILED")):
        plan = literal_plan(program, load_target("x86-avx2"))
        kernel = lower(plan, plan.space.schedule(0))
        code = print_c(kernel)
        text = self_test(kernel, code, mutant.right)
        for ending, part in ((".h", code.header), (".c", code.source), ("_test.c", text)):
            (tmp_path / f"{code.name}{ending}").write_text(part)
        assert said in run(tmp_path, code.name, COMPILERS[0], *code.flags.split()).stdout


NOT_A_NUMBER = Mutant("NaN of one output", "nothing", """
def f(X: f32[n], Z: f32[n], Y: f32[n], *, n=9):
    assume(-1 <= X <= 1)
    for i in range(n):
        Y[i] = sqrt(X[i])
    for i in range(n):
        Z[i] = «Y[i]|(Y[i] if Y[i] == Y[i] else 0.0)»
""")


def test_results_that_are_not_finite_are_compared(tmp_path: Path) -> None:
    program = parse("def f(A: f32[n], Y: f32[n], *, n=4):\n    for i in range(n):\n        Y[i] = log(A[i] * 0.0)")
    plan = literal_plan(program, load_target("x86-avx2"))
    kernel = lower(plan, plan.space.schedule(0))
    code = print_c(kernel)
    with np.errstate(invalid="raise"):  # minus infinity, within infinity
        text = self_test(kernel, code, program)
    for ending, part in ((".h", code.header), (".c", code.source), ("_test.c", text)):
        (tmp_path / f"{code.name}{ending}").write_text(part)
    assert run(tmp_path, code.name, COMPILERS[0], *code.flags.split()).stdout == "ok\n"


LENGTHS = """
def f(X: f32[n, l], L: s32[n], Y: f32[n], *, n=1, l=40, dropped=0):
    assume(1 <= L <= l)
    for i in range(n):
        Y[i] = 0
        for j in range(l):
            if s32(j) < L[i] and s32(j) < s32(l - dropped):
                Y[i] += X[i, j]
"""


def test_lengths_are_at_the_ends_of_their_range_too(tmp_path: Path) -> None:
    """The last element counts only where the length is the greatest."""
    program, wrong = parse(LENGTHS), parse(LENGTHS, sizes={"dropped": 1})
    for computed, status in ((program, 0), (wrong, 1)):
        plan = literal_plan(computed, load_target("x86-avx2"))
        kernel = lower(plan, plan.space.schedule(0))
        code = print_c(kernel)
        for ending, part in ((".h", code.header), (".c", code.source), ("_test.c", self_test(kernel, code, program))):
            (tmp_path / f"{code.name}{ending}").write_text(part)
        done = run(tmp_path, code.name, COMPILERS[0], *code.flags.split(), *SANITIZERS)
        assert done.returncode == status, done.stdout
    line, *_, last = done.stdout.splitlines()
    assert re.fullmatch(r"where L at their greatest: Y\[0\] is .*, not .*", line)
    assert last == "FAILED"
