"""Sums that a guard drops: vectors behind the last one that counts are not computed."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import machine, plans_of
from support.programs.special import spoiled, wrong_row

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, If, IntrinsicCall, Stmt, bodies, statements
from autosched.costmodel.analytic.cpu.guard_work import sums_left
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.logic import evaluate
from autosched.tiling.plans.plan import Plan

SCORES = """
def f(Q: f32[n, d], K: const[f32[d, l]], S: f32[n, l], *, n=21, l=70, d=5):
    for i, j in grid(n, l):
        S[i, j] = INIT
        for p in range(d):
            if GUARD:
                S[i, j] += Q[i, p] * K[p, j]
"""
GUARDS = ("j <= i", "j <= 3 * i + 1", "j < 40 and j <= i", "i - 9 <= j and j <= i", "j >= i", "i < 7", "j + i < 30",
          "max(0, i - 30, 2 * i - 25) <= j < min(i + 3, 17)", "j > 3 * i + 20", "i < 0")  # fmt: skip


def program(guard: str, init: str = "0", columns: int = 70) -> Program:
    text = SCORES.replace("GUARD", guard).replace("INIT", init).lstrip()
    return parse(text, filename="f.py", sizes={"l": columns})


def plan_along_columns(guard: str, init: str = "0", columns: int = 70) -> Plan:
    plans = plans_of(program(guard, init, columns), machine(), only=("x86/vfmadd.f32.zmm",))
    return next(
        p for p in plans if p.tensor_parts and "j" in [a.name for a in p.tensor_parts[0].nest.axes if a.unit > 1]
    )


@pytest.mark.sampled(7)
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("init", ["0", "Q[i, 0] * 2.0"])
def test_kernels_compute_the_program(guard: str, init: str) -> None:
    plan = plan_along_columns(guard, init)
    places = [("K", (2, 60), np.nan), ("K", (1, 33), np.inf), ("Q", (4, 1), np.nan)]
    assert wrong_row(plan, plan.space.sample(10, np.random.default_rng(1)), spoiled(plan.program, places)) is None


def test_a_tile_computes_no_vector_behind_the_last_that_counts() -> None:
    plan = plan_along_columns("j <= i")
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    row = int(ids[(values["reg_j"] == 4) & (values["reg_i"] == 2)][0])
    kernel = lower(plan, plan.space.schedule(row))
    sizes = {_calls(s.body) for s in statements(kernel.main.body) if isinstance(s, If) and _calls(s.body)}
    assert {2, 4, 6, 8} <= sizes


def executed_calls(body: tuple[Stmt, ...], at: dict[str, int]) -> int:
    """Calls that a kernel executes whose loops and branches depend on no data."""
    total = 0
    for stmt in body:
        match stmt:
            case For(var, lower, upper, inner):
                first, end = int(evaluate(lower, at)), int(evaluate(upper, at))
                total += sum(executed_calls(inner, at | {var: k}) for k in range(first, end, stmt.step))
            case If(condition, inner):
                total += executed_calls(inner, at) if evaluate(condition, at) else 0
            case IntrinsicCall():
                total += 1
    return total


def _calls(body: tuple[Stmt, ...]) -> int:
    """Instructions in one iteration of the loops inside, unrolled ones counted as often as they run."""
    total = 0
    for stmt in body:
        times = stmt.upper.value - stmt.lower.value if getattr(stmt, "kind", "") == "unrolled" else 1
        total += isinstance(stmt, IntrinsicCall) or times * sum(_calls(b) for b in bodies(stmt))
    return total


@pytest.mark.parametrize("guard", [g for g in GUARDS if g != "i < 7"])
@pytest.mark.parametrize(("rows", "vectors"), [(1, 1), (2, 3), (6, 4), (4, 5), (3, 2)])
def test_the_clock_counts_what_a_kernel_executes(guard: str, rows: int, vectors: int) -> None:
    plan = plan_along_columns(guard, columns=80)
    (part,) = plan.tensor_parts
    values = plan.space.values(ids := plan.space.enumerate().ids)
    row = int(ids[(values["reg_i"] == rows) & (values["reg_j"] == vectors)][0])
    calls = executed_calls(lower(plan, plan.space.schedule(row)).main.body, {})
    share = sums_left(part.nest, part.names, plan.space.values([row]), 1)[0]
    assert calls == pytest.approx(share * 21 * 5 * 5)


@pytest.mark.parametrize("rows", [1, 2, 6, 21])
def test_the_clock_counts_the_vectors_that_are_computed(rows: int) -> None:
    nest, names = (part := plan_along_columns("j <= i").tensor_parts[0]).nest, part.names
    v = {names.register(a): np.array([rows if a.name == "i" else 4]) for a in nest.spatial}
    vectors = [-(-min(i // rows * rows + rows, 21) // 16) for i in range(21)]  # the last row of a tile needs the most
    assert sums_left(nest, names, v, 1)[0] == pytest.approx(16 * sum(vectors) / (21 * 70))
