"""What guards rule out is not computed: bounded loops and skipped rows agree with the oracle, and issue fewer calls."""

from __future__ import annotations

from typing import Any

import pytest
from support.compiled.kernel_check import check_kernel
from support.match.agreement import disagreement
from support.plans import covering_rows, machine, plans_of

from autosched.codegen.lower import lower
from autosched.codegen.passes.substitute import decides
from autosched.codegen.tree.kernel import For, If, IntrinsicCall, Stmt
from autosched.costmodel.analytic.clock import clock
from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.logic import Const, evaluate
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps import BLOCK

CONV = {"n": 1, "h": 5, "w": 7, "ci": 3, "co": 17, "kh": 3, "kw": 3, "t": "f32", "acc": "f32"}
MASKED = """
def f(A: f32[n, 3, k], B: f32[3, k, w], C: f32[n, w], *, n=9, w=18, k=4):
    for i, j in grid(n, w):
        C[i, j] = 0
        for r, p in grid(3, k):
            if i + 2 * r < 8 and i >= r:
                C[i, j] += A[i, r, p] * B[r, p, j]
"""
PROGRAMS = {
    "border": workload("conv2d", **CONV, pad=1),
    "strided": workload("conv2d", **CONV, pad=1, stride=2),
    "dilated": workload("conv2d", **CONV, pad=2, dilation=2),
    "wide border": workload("conv2d", **(CONV | {"h": 2, "w": 3}), pad=2),
    "channels first": workload("conv2d", **CONV, pad=1, layout="nchw"),
    "channels first, strided": workload("conv2d", **CONV, pad=1, stride=2, layout="nchw"),
    "masked": parse(MASKED),
}
AVX2 = machine(frozenset(["avx2", "fma"]), 16, 32)


def nest_plan(program: Program) -> Plan:
    return next(p for p in plans_of(program, AVX2, only=("x86/vfmadd.f32.ymm",)) if p.tensor_parts)


def calls(body: tuple[Stmt, ...], env: dict[str, int]) -> int:
    """Intrinsic calls that are issued."""
    total = 0
    for stmt in body:
        match stmt:
            case For(var, lower, upper, inner):
                low, high = evaluate(lower, env), evaluate(upper, env)
                total += sum(calls(inner, {**env, var: i}) for i in range(low, high, stmt.step))
            case If(condition, inner):
                total += calls(inner, env) if evaluate(condition, env) else 0
            case IntrinsicCall():
                total += 1
    return total


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_that_skip_compute_the_program(name: str) -> None:
    plan = nest_plan(PROGRAMS[name])
    assert "skip" in {d.name for d in plan.space.decisions}
    assert disagreement(plan, list(covering_rows(plan, seed=3))[:6]) is None


def test_no_product_with_the_border_is_issued() -> None:
    """A tile of one line and whole rows: what is issued is what the program adds up, in registers of eight channels."""
    program = PROGRAMS["border"]
    plan = nest_plan(program)
    counted = {}
    for skip in (0, 1):
        row = plan.space.row_of({"reg_y": 1, "reg_x": 7, "reg_o": 1, "skip": skip, "pack_a": 2})
        assert not plan.space.why_not(row)
        counted[skip] = calls(lower(plan, plan.space.schedule(row)).main.body, {})
    lines, columns = 3 * 5 - 2, 3 * 7 - 2  # positions of the window inside the image
    assert counted[1] == lines * columns * 3 * -(-17 // 8)
    assert counted[0] == lines * 3 * 7 * 3 * -(-17 // 8)


def test_lines_of_a_tile_are_skipped_where_columns_are_the_depth() -> None:
    plan = nest_plan(PROGRAMS["channels first"])
    counted = {}
    for skip in (0, 1):
        row = plan.space.row_of({"reg_o": 1, "reg_y": 5, "skip": skip})
        assert not plan.space.why_not(row)
        counted[skip] = calls(lower(plan, plan.space.schedule(row)).main.body, {})
    assert counted[1] * 3 * 5 == counted[0] * (3 * 5 - 2)


@pytest.mark.parametrize("stride", [1, 2])
def test_tiles_away_from_the_border_share_their_code(stride: int) -> None:
    """Of the tiles along a line the first and the last are printed for themselves, and those between them once."""
    shape: dict[str, Any] = {**CONV, "h": 3, "w": 20 * stride}
    program = workload("conv2d", **shape, pad=1, stride=stride)
    plan = nest_plan(program)
    row = plan.space.row_of({"reg_y": 1, "reg_x": 4, "reg_o": 1, "skip": 1, "pack_a": 2})
    assert not plan.space.why_not(row)
    kernel = lower(plan, plan.space.schedule(row))
    tiles = {(s.lower, s.upper) for s in loops(kernel.main.body) if s.var == "xt"}
    assert tiles == {(Const(1), Const(4 if stride == 1 else 5))}
    assert disagreement(plan, [row]) is None
    lines, columns = (3 * 3 - 2, 3 * 20 - 2) if stride == 1 else (2 * 2, 3 * 20 - 1)
    assert calls(kernel.main.body, {}) == lines * columns * 3 * -(-17 // 8)


def test_places_of_the_window_that_keep_the_same_rows_share_their_code() -> None:
    """The first tile of a line leaves out a row at the window's first column, and the last tile one at its last."""
    program = workload("conv2d", **{**CONV, "h": 3, "w": 20}, pad=1)
    plan = nest_plan(program)
    row = plan.space.row_of({"reg_y": 1, "reg_x": 4, "reg_o": 1, "skip": 1, "pack_a": 2})
    kernel = lower(plan, plan.space.schedule(row))
    columns = [(s.lower, s.upper) for s in loops(kernel.main.body) if s.var == "s_u"]
    assert columns == 2 * [(Const(1), Const(3)), (Const(0), Const(3)), (Const(0), Const(2))]  # 17 channels: 16 and 1
    assert disagreement(plan, [row]) is None


def test_reads_that_a_guard_has_to_allow_keep_places_of_the_window_apart() -> None:
    """There the guard is decided, place by place: in a loop over them it would be asked."""
    plan = nest_plan(PROGRAMS["border"])
    merged = 0
    for row in covering_rows(plan, seed=5):
        for loop in loops(lower(plan, plan.space.schedule(row)).main.body):
            if loop.var == "s_u" and (loop.lower, loop.upper) in ((Const(1), Const(3)), (Const(0), Const(2))):
                merged += 1
                assert not decides("s_u", loop.body)
    assert merged


def test_what_fills_a_panel_knows_the_tile_that_stands_apart() -> None:
    """A block of the image is packed inside the loop over tiles of lines, of which the last one has no loop."""
    program = workload("conv2d", **(CONV | {"h": 57, "w": 56, "ci": 64, "co": 64}), pad=1)
    plans = (p for p in plans_of(program, AVX2, only=("x86/vfmadd.f32.ymm",)) if p.tensor_parts)
    plan = next(p for p in plans if "i←x)" in p.name)
    row = plan.space.row_of({"reg_y": 4, "reg_o": 2, "block_x": 1, "order": 3, "pack_b": BLOCK, "skip": 1})
    check_kernel(lower(plan, plan.space.schedule(row)))


def loops(body: tuple[Stmt, ...]) -> list[For]:
    """Loops, outer ones first."""
    found: list[For] = []
    for stmt in body:
        match stmt:
            case For(body=inner):
                found += [stmt, *loops(inner)]
            case If(_, inner):
                found += loops(inner)
    return found


def test_the_clock_counts_what_is_left() -> None:
    plan = nest_plan(workload("conv2d", **(CONV | {"ci": 64, "co": 64}), pad=1))
    rows = [plan.space.row_of({"reg_y": 1, "reg_x": 7, "skip": skip, "pack_a": 2}) for skip in (0, 1)]
    compute = clock(plan, plan.space.values(rows))["compute"]
    assert compute[1] / compute[0] == pytest.approx((3 * 7 - 2) / (3 * 7))
