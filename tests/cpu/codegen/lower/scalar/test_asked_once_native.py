"""Conditions on data that each row asks once: in the order of the text, and only where the program asks them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.match.agreement import expect
from support.plans import covering_rows, plans_of, this_machine

from autosched import ir
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Branch, If, Kernel, statements
from autosched.ir.program import Program
from autosched.tiling.plans.asked_once import asked_first, asked_once

ROWS = """
def f(F: u8[FROM], G: u8[9], I: s32[9], A: f32[9, 7], Y: f32[9]):
    assume(0 <= I <= 2)
    for i in range(9):
BODY
"""
SUM = "for p in range(7):"
UPDATE = "Y[i] += A[i, p]"


def rows(*lines: str, size: int = 9) -> Program:
    body = "\n".join("    " * (2 + n) + line for n, line in enumerate(lines))
    return ir.parse(ROWS.replace("FROM", str(size)).replace("BODY", body))


def kernels(program: Program, threads: int = 1) -> list[Kernel]:
    return [lower(p, p.space.schedule(r)) for p in plans_of(program, this_machine(), threads) for r in covering_rows(p)]


ONCE = {
    "one": (rows("if F[i] != 0:", SUM, UPDATE), 1),
    "inside": (rows(SUM, "if F[i] != 0:", UPDATE), 1),
    "two": (rows("if F[i] != 0:", "if G[i] != 0:", SUM, UPDATE), 2),
    "behind an axis": (rows("if i < 3:", "if F[i] != 0:", SUM, UPDATE, size=3), 1),
    "of an axis and data": (rows(SUM, "if i >= 1 and F[i - 1] != 0:", UPDATE), 1),
    "gathered": (rows("if F[I[i]] != 0:", SUM, UPDATE, size=3), 1),
}
NEVER = {
    "behind the sum's axis": rows(SUM, "if p >= i:", "if F[i] != 0:", UPDATE, size=7),
    "no term": rows("for p in range(0, i):", "if F[i - 1] != 0:", UPDATE.replace("p]", "min(p, 6)]")),
    "each term": rows(SUM, "if G[p] != 0:", UPDATE),
}


@pytest.mark.parametrize("name", ONCE)
def test_asked_once(name: str) -> None:
    program, count = ONCE[name]
    assert [len(asked_once(s)) for s in program.stages] == [count]
    made = kernels(program)
    assert any(isinstance(s, Branch) for k in made for s in statements(k.main.body))
    check_machine_code(made, expect(program))


@pytest.mark.parametrize("name", NEVER)
def test_asked_where_the_program_asks(name: str) -> None:
    assert not [g for s in NEVER[name].stages for g in asked_first(s)]
    check_machine_code(kernels(NEVER[name], threads=2), expect(NEVER[name]))


@needs_compiler
def test_exported_c(tmp_path: Path) -> None:
    programs = [ONCE[name][0] for name in ("one", "inside", "two", "gathered")]
    check_exported_c([(k, expect(p)) for p in programs for k in kernels(p)], tmp_path)


def test_conditions_stand_in_the_order_of_the_text() -> None:
    """`F` has three elements, and rows from the fourth on do not ask it."""
    for kernel in kernels(ONCE["behind an axis"][0]):
        for asked in (s for s in statements(kernel.main.body) if isinstance(s, Branch)):
            assert not any(isinstance(s, If) for s in statements(asked.body))


def test_a_condition_on_what_is_summed_is_asked_before() -> None:
    text = "def f(A: f32[2, 3], Y: f32[2]):\n    for i in range(2):\n        if Y[i] > 0.0:\n"
    program = ir.parse(text + "            for p in range(3):\n                Y[i] += A[i, p]\n")
    data = {"A": np.array([[-2, 5, 1]] * 2, np.float32), "Y": np.array([1, -1], np.float32)}
    for kernel in kernels(program):
        np.testing.assert_array_equal(compiled(kernel)(**{n: a.copy() for n, a in data.items()}), [5, -1])


def test_two_threads_and_no_row() -> None:
    program = ir.parse("def f(A: f32[1, 1], Y: f32[1]):\n    for i in range(1):\n        for p in range(i):\n"
                       "            Y[i] += A[i, p]\n")  # fmt: skip
    check_machine_code(kernels(program, threads=2), expect(program))
