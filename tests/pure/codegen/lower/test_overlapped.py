"""Fused stages beside the next tile's products, on registers that hold matrices."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.beside import overlapped, search
from support.match.agreement import disagreement, expect
from support.programs.matrices import matrix_plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, If, Kernel, statements
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan

GELU = """
def gelu(A: bf16[m, k], B: const[bf16[k, n]], bias: f32[n], P: bf16[m, n], *, m=80, n=112, k=160):
    C: f32[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
    for i, j in grid(m, n):
        x = C[i, j] + bias[j]
        P[i, j] = bf16(0.5 * x * (1.0 + erf(x * 0.7071067811865476)))
"""


def program(**sizes: int) -> Program:
    return parse(GELU, filename="gelu.py", sizes=sizes)


def plan_of(found: Program, threads: int = 1) -> Plan:
    return next(p for p in matrix_plans(found, threads) if any(t.epilogue for t in p.tensor_parts))


def row_of(plan: Plan, **wanted: int) -> int:
    """A legal row with these decisions, which are called after axes here."""
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    fits = np.logical_and.reduce([values[name] == value for name, value in wanted.items()])
    return int(ids[np.flatnonzero(fits)[0]])


def kernel_of(plan: Plan, **wanted: int) -> Kernel:
    return lower(plan, plan.space.schedule(row_of(plan, **wanted)))


@pytest.mark.parametrize(
    "wanted",
    [
        {"reg_i": 2, "reg_j": 2, "block_i": 0, "block_j": 0, "block_p": 0, "inner": 0},
        {"reg_i": 2, "reg_j": 2, "block_i": 0, "block_j": 0, "block_p": 0, "inner": 1},
        {"reg_i": 1, "reg_j": 3, "block_i": 2, "block_j": 2, "block_p": 4},
    ],
    ids=["rows inside", "columns inside", "blocks"],
)
def test_rows_at_the_ends_of_axes_and_in_blocks(wanted: dict[str, int]) -> None:
    """80 rows are two tiles of 32 and one of 16, 112 columns three and one: each tile's end comes once."""
    found = program(k=256)
    plan = plan_of(found)
    row = row_of(plan, **wanted)
    assert overlapped(lower(plan, plan.space.schedule(row)))
    assert disagreement(plan, [row], expect(found)) is None


def test_threads_that_have_no_tile() -> None:
    """Of two threads one has the rows at the end, which are no whole tile: it finishes none of another."""
    found = program(m=48, n=32)
    plan = plan_of(found, threads=2)
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    rows = ids[(values["threads"] == 2) & (values["reg_i"] == 2)].tolist()
    assert overlapped(lower(plan, plan.space.schedule(rows[0])))
    assert disagreement(plan, rows[:: max(1, len(rows) // 6)], expect(found)) is None


def test_products_are_shared_out_unit_by_unit() -> None:
    """The loop over rows has steps of one unit, and stores after them."""
    kernel = kernel_of(plan_of(program(k=256)), block_p=0, reg_i=2, reg_j=2)
    loop = next(s for s in kernel.statements if isinstance(s, For) and s.note.startswith("beside"))
    steps, finish = loop.body
    assert isinstance(steps, For)
    assert steps.step == 1
    assert isinstance(finish, If)
    assert {s.buffer for s in statements(finish.body) if isinstance(s, Assign)} == {"P"}


def test_short_visits_and_plain_products_stay_as_they_are() -> None:
    short = plan_of(program(k=96))
    assert not overlapped(kernel_of(short, block_p=0))
    blocks = plan_of(program(k=512))
    assert overlapped(kernel_of(blocks, block_p=4))
    text = GELU[: GELU.index("    for i, j in grid(m, n):\n        x")].replace("bias: f32[n], P: bf16", "C: f32")
    plain = parse(text.replace("    C: f32[m, n]\n", ""), filename="plain.py")
    plan = matrix_plans(plain)[0]
    assert not overlapped(kernel_of(plan, block_p=0))


@pytest.mark.parametrize(("programs", "least"), [(3, 2), pytest.param(20, 20, marks=pytest.mark.slow)])
def test_random_programs(programs: int, least: int) -> None:
    """`python -m tests.fuzz.beside --programs 500` looks at more of them."""
    count, wrong = search(0, programs)
    assert not wrong, wrong
    assert count["beside"] >= least
