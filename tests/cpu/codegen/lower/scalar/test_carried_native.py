"""Scans whose elements a register hands on, several rows in turn: machine code, exported C and the oracle agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled.c_build import needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import expect
from support.plans import covering_rows, plans_of, this_machine

from autosched import ir
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir.program import Program
from autosched.tiling.plans.plan import ScalarPart

SCAN = """
def f(A: T[m, n], X: T[m, n], Y: T[m, n], *, m=13, n=21):
    for i in range(m):
        Y[i, 0] = X[i, 0]
        for j in range(1, n):
            Y[i, j] = VALUE
"""
CARRIED = {
    "sum": "Y[i, j - 1] + X[i, j]",
    "gated": "A[i, j] * Y[i, j - 1] + X[i, j]",
    "twice": "Y[i, j - 1] * Y[i, j - 1] - X[i, j]",
    "greatest": "max(Y[i, j - 1], X[i, j])",
    "chosen": "(Y[i, j - 1] if X[i, j] > A[i, j] else X[i, j])",
}
BEGUN = {
    "zero": "(Y[i, j - 1] if j > 0 else 0) + X[i, j]",
    "row's own": "A[i, j] * (A[i, 0] if j == 0 else Y[i, j - 1]) + X[i, j]",
    "greatest": "(max(Y[i, j - 1], X[i, j]) if j >= 1 else X[i, j])",
    "by data": "(Y[i, j - 1] if j > 0 and X[i, j] > A[i, j] else X[i, j])",
}
OTHERS = {
    "row above": "Y[i, j - 1] + Y[max(i - 1, 0), j - 1]",
    "row before": "Y[max(i - 1, 0), j] + X[i, j]",
    "first": "Y[i, 0] + X[i, j]",
}


def scan(value: str, dtype: str = "f32", **sizes: int) -> Program:
    return ir.parse(SCAN.replace("VALUE", value).replace("T[", f"{dtype}["), sizes=sizes)


def carried_parts(program: Program, threads: int = 1) -> list[ScalarPart]:
    plans = plans_of(program, this_machine(), threads)
    return [p for plan in plans for p in plan.parts if isinstance(p, ScalarPart) and p.carried]


def kernels(program: Program, threads: int = 1) -> list[Kernel]:
    return [lower(p, p.space.schedule(r)) for p in plans_of(program, this_machine(), threads) for r in covering_rows(p)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BEGUN)
@pytest.mark.parametrize("dtype", ["f32", "s32"])
@pytest.mark.parametrize("n", [1, 21])
def test_the_first_element_reads_nothing_before_it(name: str, dtype: str, n: int) -> None:
    text = SCAN.replace("        Y[i, 0] = X[i, 0]\n", "").replace("range(1, n)", "range(n)")
    program = ir.parse(text.replace("VALUE", BEGUN[name]).replace("T[", f"{dtype}["), sizes={"n": n})
    assert n == 1 or carried_parts(program)
    check_machine_code(kernels(program), expect(program))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "u8"])
def test_machine_code(name: str, dtype: str) -> None:
    program = scan(CARRIED[name], dtype)
    assert carried_parts(program)
    check_machine_code(kernels(program), expect(program))


@pytest.mark.parametrize("sizes", [{"m": 1}, {"m": 8, "n": 2}, {"m": 3, "n": 1}])
def test_few_rows_and_elements(sizes: dict[str, int]) -> None:
    program = scan(CARRIED["gated"], **sizes)
    check_machine_code(kernels(program, threads=2), expect(program))


@pytest.mark.parametrize("name", OTHERS)
def test_other_elements_are_read_from_memory(name: str) -> None:
    program = scan(OTHERS[name])
    assert not carried_parts(program)
    check_machine_code(kernels(program), expect(program))


def test_narrow_floats_are_read_from_memory() -> None:
    program = scan(CARRIED["gated"], "bf16")
    assert not carried_parts(program)
    check_machine_code(kernels(program), expect(program))


def test_down_the_columns() -> None:
    text = SCAN.replace("Y[i, 0] = X[i, 0]", "Y[0, i] = X[0, i]").replace("VALUE", "A[j, i] * Y[j - 1, i] + X[j, i]")
    program = ir.parse(text.replace("T[", "f32[").replace("Y[i, j]", "Y[j, i]"), sizes={"m": 12, "n": 12})
    assert carried_parts(program)
    check_machine_code(kernels(program), expect(program))


@pytest.mark.slow
@needs_compiler
def test_exported_c(tmp_path: Path) -> None:
    programs = [scan(value) for value in CARRIED.values()]
    check_exported_c([(k, expect(p)) for p in programs for k in kernels(p)], tmp_path)
