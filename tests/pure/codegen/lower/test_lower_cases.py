"""Small programs that lowering once got wrong, one named case each: every covering row agrees with the oracle."""

from __future__ import annotations

import pytest
from support.match.agreement import disagreement
from support.plans import covering_rows, leading, machine, plans_of

from autosched.ir import parse, workload

CASES = {
    "guard_over_spatial_axes_that_no_operand_has": """
def f(A: f32[n, k], B: f32[k, w], C: f32[n, w], E: f32[n, w], *, n=5, w=18, k=131):
    for i, j in grid(n, w):
        C[i, j] = 1
        for p in range(k):
            if j <= 3 * i:
                C[i, j] += A[i, p] * B[p, j]
    for i, j in grid(n, w):
        E[i, j] = C[i, j] * 2.0
""",
    "guard_over_spatial_axes_of_an_update": """
def f(A: f32[n, k], B: f32[k, w], D: f32[n, w], *, n=5, w=18, k=131):
    for i, j in grid(n, w):
        for p in range(k):
            if j <= 3 * i:
                D[i, j] += A[i, p] * B[p, j]
""",
    "guard_keeps_a_scalar_reduction_inside": """
def f(A: s32[19], C: s32[19, 18]):
    for i in range(19):
        for j in range(i + 1):
            for r in range(i + 1):
                if j < 18:
                    C[i, j] = min(C[i, j], A[18 - r])
""",
    "guard_of_a_reduction_keeps_a_scalar_target_inside": """
def f(A: s32[12], C: s32[9]):
    for i in range(12):
        for r in range(3):
            if i + r - 2 < 9 and i < 9 + r:
                C[max(0, i + r - 4) // 2] = max(C[max(0, i + r - 4) // 2], A[i])
            if i + r < 9:
                C[i] = min(C[i], A[i + r])
""",
    "guard_keeps_both_operands_inside": """
def f(A: f32[n], B: f32[n, w], C: f32[n, w], *, n=9, w=18):
    for i, j in grid(n, w):
        C[i, j] = 0
        for r in range(3):
            if 0 <= i + r - 1 < n:
                C[i, j] += A[i + r - 1] * B[i + r - 1, j]
""",
    "outer_loop_bounds_leave_elements_alone": """
def f(A: f32[n, k], B: f32[k, n], C: f32[n, n], *, n=19, k=5):
    for i in range(n):
        for j in range(i, n):
            C[i, j] = 0
            for p in range(k):
                C[i, j] += A[i, p] * B[p, j]
""",
    "guard_keeps_the_output_inside": """
def f(A: f32[8, k], B: f32[k, w], C: f32[8, w], *, n=12, w=18, k=5):
    for i, j in grid(n, w):
        for p in range(k):
            if i < 8:
                C[i, j] += A[i, p] * B[p, j]
""",
    "reduction_reads_its_own_target": """
def f(A: f32[n, k], C: f32[n], *, n=19, k=5):
    for i in range(n):
        for p in range(k):
            C[i] += A[i, p] * C[i]
""",
    "last_assignment_wins": """
def f(A: f32[n, k], C: f32[n], *, n=19, k=5):
    for i in range(n):
        for p in range(k):
            C[i] = A[i, p]
""",
    "fused_stages_update_in_place": """
def f(A: f32[n, k], B: f32[k, w], b: f32[w], C: f32[n, w], *, n=5, w=18, k=5):
    for i, j in grid(n, w):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += A[i, p] * B[p, j]
    for i, j in grid(n, w):
        C[i, j] += b[j]
    for i, j in grid(n, w):
        C[i, j] = max(C[i, j], 0)
""",
    "initialisation_outside_a_serial_loop": """
def f(A: s32[n], B: s32[n], C: s32[1], *, n=9):
    C[0] = 3
    for k in range(n):
        C[0] += A[k]
        B[k] = C[0]
""",
    "axes_named_like_register_units": """
def f(A: f32[b, n, k], B: f32[k, w], C: f32[b, n, w], *, b=2, n=5, w=40, k=5):
    for ir, jr, i, j in grid(b, 2, n, w):
        for ju in range(k):
            C[ir, i, j] += A[ir, i, ju] * B[ju, j]
""",
    "axis_named_like_the_lane": """
def f(A: f32[w], C: f32[w], *, w=40):
    for e in range(w):
        C[e] = A[e] * 2.0
""",
    "two_reductions_of_one_tensor": """
def f(A: f32[n, k], B: f32[k], C: f32[n], D: f32[n], *, n=19, k=5):
    for i in range(n):
        C[i] = 0
        for p in range(k):
            C[i] = max(C[i], abs(A[i, p]))
    for i in range(n):
        for p in range(k):
            C[i] -= abs(A[i, p])
""",
    "loop_that_never_runs": """
def f(A: f32[n, k], B: f32[k, w], C: f32[n, w], *, n=5, w=18, k=5):
    for i, j in grid(n, w):
        C[i, j] = 1
        for p in range(3, 3):
            C[i, j] += A[i, p] * B[p, j]
""",
    "initial_value_from_an_intermediate": """
def f(A: f32[n, k], B: f32[k, w], C: f32[n, w], *, n=2, w=9, k=2):
    T: f32[n, w]
    for i, j in grid(n, w):
        T[i, j] = 0
        for p in range(k):
            T[i, j] += A[i, p] * B[p, j]
    for i, j in grid(n, w):
        C[i, j] = T[i, j]
        for p in range(k):
            C[i, j] += A[i, p] * B[p, j]
""",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    program = parse(CASES[name], filename=f"{name}.py")
    for plan in leading(plans_of(program, threads=2), 2):
        rows = list(covering_rows(plan))[:4]
        assert disagreement(plan, rows) is None


def test_a_mapping_wider_than_the_registers_is_not_planned() -> None:
    program = workload("matmul", m=5, n=17, k=6, a="f64", b="f64")  # portable v16: 8 registers for each operand
    plans = plans_of(program, machine(frozenset(), registers=16, vector_bytes=16))
    assert plans
    for plan in plans:
        assert len(plan.space.enumerate().ids)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("guard_over_spatial")])
def test_guards_over_spatial_axes_do_not_prevent_instructions(name: str) -> None:
    plans = plans_of(parse(CASES[name], filename=f"{name}.py"))
    assert any(plan.tensor_parts for plan in plans)
