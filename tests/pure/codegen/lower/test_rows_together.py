"""Rows of a reduction whose lanes are combined together: each lane of the last register is one row's result."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import machine, plans_of
from support.programs.special import spoiled, wrong_row

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, statements
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan

ROWS = """
def f(A: T[m, n], x: T[m], y: T[m, 2], *, m=11, n=45):
    for i in range(m):
        y[i, 1] = INIT
        for j in range(n):
            UPDATE
"""
UPDATES = {
    "sum": ("0", "y[i, 1] += A[i, j] * x[i]"),
    "started": ("x[i]", "y[i, 1] -= A[i, j]"),
    "greatest": ("-inf", "y[i, 1] = max(y[i, 1], A[i, j])"),
    "least": ("x[i]", "y[i, 1] = min(y[i, 1], A[i, j])"),
    "masked": ("0", "if A[i, j] > x[i]:\n                y[i, 1] += A[i, j]"),
    "triangle": ("0", "if j <= 3 * i:\n                y[i, 1] += A[i, j]"),
}
CASES = [
    (update, dtype)
    for update in UPDATES
    for dtype in ("f32", "f64", "s32", "u8")
    if dtype[0] == "f" or update != "greatest"
]


def program(update: str, dtype: str) -> Program:
    init, text = UPDATES[update]
    return parse(ROWS.replace("T[", f"{dtype}[").replace("INIT", init).replace("UPDATE", text).lstrip(), "f.py")


def across(made: Program) -> Plan:
    return next(p for p in plans_of(made, machine()) if not p.tensor_parts)


def rows_of(plan: Plan, width: int, rows: int) -> list[int]:
    ids = plan.space.enumerate().ids
    v = plan.space.values(ids)
    lanes = v["lanes"] == 1 if "lanes" in v else np.ones(len(ids), np.bool_)
    return [int(r) for r in ids[(v["vector"] == width) & (v["rows"] == rows) & lanes][:3]]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("update", "dtype"), CASES)
def test_each_row_has_its_result(update: str, dtype: str) -> None:
    made = program(update, dtype)
    plan = across(made)
    special = [("A", (3, 40), np.nan), ("A", (5, 0), -np.inf), ("A", (6, 44), np.inf), ("A", (8, 17), -0.0)]
    expected = spoiled(made, special if dtype[0] == "f" else ())
    tried = [row for width in (4, 8, 16) for rows in (2, 4, 8) for row in rows_of(plan, width, rows)]
    assert tried
    assert wrong_row(plan, tried, expected) is None


def test_one_store_has_the_rows() -> None:
    plan = across(program("sum", "f32"))
    (row, *_) = rows_of(plan, 16, 8)
    kernel = lower(plan, plan.space.schedule(row))
    widths = [
        s.lane.width if s.lane else 1 for s in statements(kernel.main.body) if isinstance(s, Assign) and s.buffer == "y"
    ]
    assert 8 in widths
