"""Triangular sums: those that go on from their neighbours, and vectors along rows of different length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.plans import leading, machine, plans_of
from support.programs.lower_programs import triangular_texts

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan, ScalarPart

HEAD = "def f(X: f32[n, d], Y: f32[n, d], *, n=20, d=21):\n"
RUNNING = """
    for i, k in grid(n, d):
        Y[i, k] = 0
        for j in range({bounds}):
            Y[i, k] += {term}
"""


def rows_agree(program: Program, plan: Plan, count: int, seed: int = 0) -> None:
    ids = plan.space.enumerate().ids
    rows = np.random.default_rng(seed).choice(ids, size=min(count, len(ids)), replace=False).tolist()
    assert disagreement(plan, rows, expect(program, seed)) is None


def part_of(program: Program) -> tuple[Plan, ScalarPart]:
    plan = plans_of(program, machine())[0]
    (part,) = plan.parts
    assert isinstance(part, ScalarPart)
    return plan, part


@pytest.mark.parametrize("bounds", ["i + 1", "i", "3, i + 1", "2 * i + 1 - i", "2, 5 + i - 4"])
def test_sums_of_one_more_term_go_on_from_their_neighbours(bounds: str) -> None:
    program = parse(HEAD + RUNNING.format(bounds=bounds, term="X[j, k]"))
    plan, part = part_of(program)
    assert (part.running, part.vector, part.order) == ("i", "k", ("k", "i", "j"))
    rows_agree(program, plan, 6)


@pytest.mark.parametrize(
    ("bounds", "term"),
    [("i + 1", "X[j, k] * X[i, k]"), ("i, n", "X[j, k]"), ("n", "X[j, k]"), ("n - i", "X[j, k]")],
    ids=["a term that moves", "a start that moves", "no triangle", "an end that falls"],
)
def test_other_sums_do_not(bounds: str, term: str) -> None:
    program = parse(HEAD + RUNNING.format(bounds=bounds, term=term))
    plan, part = part_of(program)
    assert part.running is None
    rows_agree(program, plan, 3)


@pytest.mark.parametrize(
    ("init", "update"),
    [("0", "Y[i] += X[j]"), ("1", "Y[i] *= X[j]"), ("-inf", "Y[i] = max(Y[i], X[j])"), ("X[0]", "Y[i] -= X[j]")],
)
def test_running_values_have_the_bits_of_the_sums(init: str, update: str) -> None:
    text = f"""
def f(X: f32[n], Y: f32[n], *, n=37):
    for i in range(n):
        Y[i] = {init}
        for j in range(i + 1):
            {update}
"""
    program = parse(text)
    plan, part = part_of(program)
    assert part.running == "i"
    assert not part.parallel
    rows_agree(program, plan, 2)


ROWS: dict[str, str] = {
    "below the diagonal": "j in range(i + 1)",
    "above the diagonal": "j in range(i, n)",
    "a band": "j in range(i - 3, i + 18)",
    "often empty": "j in range(2 * i, n)",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("update", ["Y[i] += A[i, j + 3] * x[j + 3]", "Y[i] = max(Y[i], A[i, j + 3])"])
def test_rows_of_different_length_lie_in_lanes(name: str, update: str) -> None:
    text = f"""
def f(A: f32[n, 80], x: f32[80], Y: f32[n], *, n=37):
    for i in range(n):
        Y[i] = 0
        for {ROWS[name]}:
            {update}
"""
    program = parse(text)
    plan, part = part_of(program)
    assert part.across == "j"
    rows_agree(program, plan, 8)


def test_rows_that_data_choose_are_rows() -> None:
    text = """
def f(T: f32[v, d], I: s32[n], X: f32[n, d], Y: f32[n], *, v=9, d=37, n=5):
    assume(0 <= I < v)
    for i in range(n):
        Y[i] = 0
        for j in range(d):
            Y[i] += T[I[i], j] * X[i, j]
"""
    program = parse(text)
    plan, part = part_of(program)
    assert part.across == "j"
    rows_agree(program, plan, 6)


@pytest.mark.slow
@examples(12)
@given(triangular_texts(), st.integers(1, 2), st.integers(0, 2**31))
def test_rows_of_triangles_compute_the_program(text: str, threads: int, seed: int) -> None:
    program = parse(text)
    for plan in leading(plans_of(program, machine(), threads=threads), 2):
        rows_agree(program, plan, 3, seed)


def test_a_shared_loop_over_rows_of_different_length_has_bytes() -> None:
    """Used to end in `ValueError: the size i + 1 is symbolic`."""
    text = """
def f(S: f32[n, n], M: f32[n], Y: f32[n, n], *, n=24):
    for i in range(n):
        M[i] = -inf
        for j in range(i + 1):
            M[i] = max(M[i], S[i, j])
        for k in range(i + 1):
            Y[i, k] = exp(S[i, k] - M[i])
"""
    program = parse(text)
    for plan in plans_of(program, machine()):
        rows_agree(program, plan, 3)


