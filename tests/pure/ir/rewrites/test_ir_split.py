"""A cut reduction computes the same, bit for bit where its dtype wraps, and its lanes are an instruction's."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import covering_rows, machine

from autosched.ir import parse, random_inputs, run, run_with_error, workload
from autosched.ir.rewrites.split_reduction import Cut, split_reduction
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

SUM = """
def total(A: s32[n], C: s32[1], *, n=37):
    C[0] = 5
    for p in range(n):
        C[0] += A[p]
"""
SHIFTED = """
def shifted(A: s32[m, n], x: s32[n], C: s32[m], *, m=6, n=41):
    for i in range(1, m):
        C[i] = x[i]
        for q in range(2):
            for p in range(3, n):
                C[i] += A[i - q, p] * x[p]
"""


@pytest.mark.parametrize("cut", [Cut(4, 2), Cut(8, 1), Cut(3, 1, inside=False), Cut(2, 4, inside=False)])
@pytest.mark.parametrize("text", [SUM, SHIFTED])
def test_the_cut_program_computes_the_same(text: str, cut: Cut) -> None:
    program = parse(text, filename="f.py")
    found = split_reduction(program, program.stages[0], "p", cut)
    assert found is not None
    assert parse(str(found.after), filename="g.py").stages == found.after.stages
    arrays = random_inputs(program, np.random.default_rng(0))
    np.testing.assert_array_equal(run(program, arrays)["C"], run(found.after, arrays)["C"])


def test_floats_stay_within_the_bound() -> None:
    program = workload("gemv", m=5, k=300)
    arrays = random_inputs(program, np.random.default_rng(0))
    wanted, bound = run_with_error(program, arrays, {}, {"C"})
    found = split_reduction(program, program.stages[0], "p", Cut(16, 1))
    assert found is not None
    assert (np.abs(run(found.after, arrays)["C"] - wanted["C"]) <= bound["C"]).all()


@pytest.mark.parametrize(
    "text",
    [
        SUM.replace("C[0] += A[p]", "C[0] = max(C[0], A[p])"),
        SUM.replace("    C[0] = 5\n", ""),
        SUM.replace("n=37", "n=6"),
        SHIFTED.replace("                C[i] +=", "                if p > i:\n                    C[i] +="),
    ],
)
def test_what_is_not_cut(text: str) -> None:
    program = parse(text, filename="f.py")
    assert split_reduction(program, program.stages[0], "p", Cut(4, 1)) is None


@pytest.mark.slow
def test_a_matrix_times_a_vector_has_partial_sums_in_the_lanes() -> None:
    """Rows lie side by side along the sum: no operand is packed, and the kernels are right."""
    program = parse(
        """
def gemv(A: u8[m, k], B: s8[k], C: s32[m], *, m=11, k=300):
    for i in range(m):
        C[i] = 0
        for p in range(k):
            C[i] += s32(A[i, p]) * s32(B[p])
""",
        filename="f.py",
    )
    _, plans = plans_of(TuneRequest(program, machine(), threads=2))
    cut = [p for p in plans if "[C in 16 parts]" in p.name]
    assert cut
    expected = expect(program)
    for plan in cut:
        assert disagreement(plan, list(covering_rows(plan))[:8], expected) is None
    assert not [p for p in plans_of(TuneRequest(workload("matmul", m=64, n=64, k=64, a="u8", b="s8"), machine()))[1]
                if "parts" in p.name]  # fmt: skip


@pytest.mark.slow
def test_a_long_sum_is_shared_out() -> None:
    program = parse(
        "def f(A: f32[n], C: f32[1], *, n=40001):\n    C[0] = 0\n    for p in range(n):\n        C[0] += A[p]\n"
    )
    _, plans = plans_of(TuneRequest(program, machine(), threads=3))
    (shared,) = [p for p in plans if "[C in 3 parts]" in p.name]
    assert disagreement(shared, list(covering_rows(shared)), expect(program)) is None
    assert not [
        p for p in plans_of(TuneRequest(program, machine(), numerics="bitwise", threads=3))[1] if "parts" in p.name
    ]
