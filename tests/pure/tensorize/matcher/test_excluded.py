"""What a guard excludes cannot change the result, whatever it holds: NaN and infinities stay where the program has
them, or the certificate names what must be finite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import EXAMPLES, examples
from support.plans import TRIANGLE, covering_rows, leading, machine, plans_of, small_programs
from support.programs.special import spoiled, wrong_row

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of

SUM = """
def f(A: f32[n, n], x: f32[n], y: f32[n], *, n=37):
    for i in range(n):
        y[i] = 0
        for j in range(n):
            if j <= i:
                y[i] += A[i, j] * x[j]
"""
BAND = """
def f(A: f32[n, n], B: f32[n, m], C: f32[n, m], *, n=13, m=18):
    for i, j in grid(n, m):
        C[i, j] = 0
        for k in range(n):
            if k <= i + 3 and i <= k + 2:
                C[i, j] += A[i, k] * B[k, j]
"""
ONTO = """
def f(A: f32[n, n], B: f32[n, m], C: f32[n, m], *, n=9, m=18):
    for i, j in grid(n, m):
        for k in range(n):
            if k > i and j > i:
                C[i, j] += A[i, k] * B[k, j]
"""
DEPTHWISE = """
def f(X: f32[9, 9, 5], W: f32[3, 3, 5], Y: f32[9, 9, 5]):
    for y, x, c in grid(9, 9, 5):
        Y[y, x, c] = 0
        for r, s in grid(3, 3):
            if 0 <= y + r - 1 < 9 and 0 <= x + s - 1 < 9:
                Y[y, x, c] += X[y + r - 1, x + s - 1, c] * W[r, s, c]
"""
CHANNELS = """
def f(X: f16[9, 9, 16], W: f16[3, 3, 16, 16], Y: f32[9, 9, 16]):
    for y, x, c in grid(9, 9, 16):
        Y[y, x, c] = 0
        for r, s, k in grid(3, 3, 16):
            if 0 <= y + r - 1 < 9 and 0 <= x + s - 1 < 9:
                Y[y, x, c] += f32(X[y + r - 1, x + s - 1, k]) * f32(W[r, s, k, c])
"""
BOUNDED = DEPTHWISE.replace('):\n    for y', '):\n    assume(-2 <= W <= 2)\n    for y')


def plans_at(program: Program, numerics: str) -> list[Plan]:
    here = machine()
    found = match(program, usable(Catalogue.builtin(), here, "cpu"), numerics=numerics)
    return make_plans(program, here, candidates_of(found), 1)


def assumptions(program: Program) -> set[str]:
    return {a for p in plans_of(program) for m in p.mappings for a in m.certificate.assumptions}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (SUM, [("x", (20,), np.nan), ("A", (3, 30), np.nan)]),
        (TRIANGLE, [("B", (5, 3), np.nan), ("A", (3, 7), np.inf)]),
        pytest.param(BAND, [("B", (6, 3), np.inf), ("A", (0, 9), np.nan)], marks=pytest.mark.slow),
        pytest.param(ONTO, [("B", (6, 7), np.nan), ("A", (5, 2), np.nan)], marks=pytest.mark.slow),
    ],
)
def test_what_a_guard_excludes_does_not_matter(text: str, places: list[tuple[str, tuple[int, ...], float]]) -> None:
    program = parse(text)
    oracle = spoiled(program, places)
    plans = leading(plans_of(program), 2)
    assert any(p.tensor_parts for p in plans)
    for plan in plans:
        assert not any("finite where" in a for m in plan.mappings for a in m.certificate.assumptions)
        assert wrong_row(plan, covering_rows(plan, extra=1), oracle) is None


def test_a_border_of_zeros_is_assumed_by_name() -> None:
    program = parse(DEPTHWISE)
    assert "finite W: W[r, s, c] is finite where it meets a zero" in assumptions(program)
    assert all(m.finite in ((), ("W",)) for p in plans_of(program) for m in p.mappings)


def test_an_assumption_in_the_program_discharges_it() -> None:
    program = parse(BOUNDED)
    assert not any("finite where" in a for a in assumptions(program))
    proved = {o.statement for p in plans_of(program) for m in p.mappings for o in m.certificate.obligations}
    assert "W[r, s, c] is finite, since -2 <= W <= 2" in proved


@pytest.mark.parametrize("name", ["depthwise", pytest.param("conv_bf16", marks=pytest.mark.slow)])
def test_nothing_is_assumed_finite_at_the_level_of_special_values(name: str) -> None:
    program = small_programs()[name]
    plans = leading(plans_at(program, "special"), 1)
    assert any(p.tensor_parts for p in plans)
    for plan in plans:
        assert not any(m.finite for m in plan.mappings)
        assert wrong_row(plan, list(covering_rows(plan, extra=1))[:6]) is None


def test_an_instruction_on_whole_matrices_is_refused_there() -> None:
    (tile,) = Catalogue.builtin().select(["cuda/mma.m16n8k16.f16.f16.f32"])
    program = parse(CHANNELS)
    (plain,), (strict,) = (match(program, [tile], numerics=level) for level in ("reassociated", "special"))
    assert plain.verdict == "match"
    assert all(m.finite == ("W",) for m in plain.mappings)
    assert strict.verdict == "no"
    assert strict.reason is not None
    assert strict.reason.code == "NUMERICS"
    assert "W[r, s, k, c] is finite where it meets a zero" in strict.reason.message


SLOW = ("matmul_bf16", "softmax", "matmul_bias_relu", "einsum")


@pytest.mark.parametrize("name", ["matmul_f32", "gemv", *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_values_stay_in_their_rows(name: str) -> None:
    program = small_programs()[name]
    for plan in leading(plans_of(program), 1):
        assert wrong_row(plan, list(covering_rows(plan, extra=1))[:8]) is None


@st.composite
def guarded(draw: st.DrawFn) -> tuple[str, str]:
    """A product with guards and bounds on its axes, and the level of numerics to match it at."""
    n, m, k = (draw(st.integers(3, 19)) for _ in range(3))
    pool = ["p <= i", "p >= i", "p <= j", "j <= i", "p + 2 <= i + j", "p != 2", "i + p < 7", "2 * p <= i + 3", "i > 1"]
    guards = draw(st.lists(st.sampled_from(pool), max_size=2, unique=True))
    bounds = draw(st.sampled_from([f"range({k})", f"range(min({k}, i + 1))", f"range(min(i, {k - 1}), {k})"]))
    start = draw(st.sampled_from(["        C[i, j] = 0\n", ""]))
    operands = draw(st.sampled_from([("A[i, p]", "B[p, j]"), ("A[p, i]", "B[j, p]")]))
    shapes = [f"{n}, {k}", f"{k}, {m}"] if operands[0] == "A[i, p]" else [f"{k}, {n}", f"{m}, {k}"]
    condition = f"            if {' and '.join(guards)}:\n    " if guards else ""
    text = (
        f"def f(A: f32[{shapes[0]}], B: f32[{shapes[1]}], C: f32[{n}, {m}]):\n    for i, j in grid({n}, {m}):\n{start}"
        f"        for p in {bounds}:\n{condition}            C[i, j] += {operands[0]} * {operands[1]}\n"
    )
    return text, draw(st.sampled_from(["reassociated", "special"]))


@examples(60 if EXAMPLES else 5)
@given(guarded(), st.integers(0, 99))
def test_random_guards(case: tuple[str, str], seed: int) -> None:
    program = parse(case[0])
    for plan in leading(plans_at(program, case[1]), 1):
        rows = list(covering_rows(plan, seed, extra=2))[:4]
        assert wrong_row(plan, rows) is None, case[0]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_choice_of_zero_multiplies_and_is_no_guard(dtype: str) -> None:
    """`0 * W` is NaN where W is infinite: at `special` nothing may leave that step out, widened operands included."""
    x, w = "X[y * 3 + r * 2 - 2, x]", "W[r]"
    if dtype != "f32":
        x, w = f"f32({x})", f"f32({w})"
    program = parse(
        f"def f(X: {dtype}[17, 8], W: {dtype}[3], Y: f32[6, 8]):\n"
        "    for y, x in grid(6, 8):\n"
        "        Y[y, x] = 0\n"
        "        for r in range(3):\n"
        f"            Y[y, x] += ({x} if 0 <= y * 3 + r * 2 - 2 < 17 else 0) * {w}\n"
    )
    instructions = list(Catalogue.builtin().select(["x86/vfmadd.f32.ymm"]))
    (strict,) = match(program, instructions, "special")
    assert strict.verdict == "no"
    (assuming,) = match(program, instructions)
    assert any("finite W" in a for m in assuming.mappings for a in m.certificate.assumptions)
