"""Sums of several parts a step: tolerances count each part; what several stages write is not prepared; powers; bounds
that are numbers."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.errors import ProgramError
from autosched.ir import parse, run
from autosched.ir.oracle.slack import NO_SLACK, Slack
from autosched.ir.oracle.tolerances import run_with_error
from autosched.ir.prepared import prepared_tensors


def test_products_that_cancel_still_round() -> None:
    program = parse("""
def f(A: f32[1, 8], B: f32[1, 8], C: f32[1]):
    for i in range(1):
        C[i] = 0
        for k in range(8):
            C[i] += A[i, k] * B[i, k] - B[i, k] * A[i, k]
""")
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 1, 8), np.float32)
    found, errors = run_with_error(program, {"A": a, "B": b}, fused_stages={"C"})
    assert found["C"][0] == 0.0
    wide = a.astype(np.float64) * b
    fused = float((wide - (a * b)).sum())  # one product of each pair rounds, the other does not
    assert fused != 0.0
    assert abs(fused) <= errors["C"][0] <= 1e-5


def test_what_two_stages_of_a_nest_write_is_not_prepared() -> None:
    text = """
def f(A: const[f32[8, 8]], B: const[f32[8, 8]], C: f32[8, 8]):
    T: f32[8, 8, 2]
    for q, r in grid(8, 8):
        T[q, r, 0] = A[q, r]
        T[q, r, 1] = B[q, r]
    for i, j in grid(8, 8):
        C[i, j] = T[i, j, 0] + T[i, j, 1]
"""
    program = parse(text)
    assert prepared_tensors(program.body, program.tensors) == ()
    alone = parse(text.replace("        T[q, r, 1] = B[q, r]\n", "").replace("T[i, j, 1]", "B[i, j]"))
    assert prepared_tensors(alone.body, alone.tensors) == ("T",)


def test_a_power_is_a_product() -> None:
    program = parse("""
def f(X: s32[4], M: s32[4], V: s32[4]):
    for i in range(4):
        V[i] = (X[i] - M[i]) ** 2 + X[i] ** 3
""")
    assert "(X[i] - M[i]) * (X[i] - M[i]) + X[i] * X[i] * X[i]" in str(program)
    x, m = np.arange(4, dtype=np.int32), np.full(4, 7, np.int32)
    assert run(program, {"X": x, "M": m})["V"].tolist() == ((x - m) ** 2 + x**3).tolist()


@pytest.mark.parametrize("exponent", ["0", "1", "5", "True", "2.0", "n", "-1"])
def test_what_is_no_power(exponent: str) -> None:
    with pytest.raises(ProgramError, match=r"\*\* takes a whole number from 2 to 4") as caught:
        parse(f"def f(X: s32[4], V: s32[4], *, n=4):\n    for i in range(4):\n        V[i] = X[i] ** {exponent}\n")
    assert caught.value.hint == "multiply instead"


def test_a_bound_that_is_a_number() -> None:
    program = parse("""
def f(X: f32[6], Y: f32[6], Z: f32[6]):
    for i in range(6):
        Y[i] = X[i] + 0.0
    for i in range(6):
        Z[i] = Y[i] * 4.0
""")
    x = np.array([0.0, 1.0, -8.0, 1e-3, np.inf, np.nan], np.float32)
    _, errors = run_with_error(program, {"X": x}, slack=Slack(1.0, (), (("Y", 0.125),)))
    assert np.all(errors["Y"][:4] == 0.125)
    assert errors["Y"][4] == 0.0
    assert np.all(errors["Z"][:4] >= 0.5)
    _, none = run_with_error(program, {"X": x})
    assert np.all(none["Y"] == 0.0)


def test_bounds_join() -> None:
    one, other = Slack(1.0, (), (("Y", 0.4),)), Slack(2.0, (("Y", 0.5),), (("Y", 0.3), ("Z", 0.2)))
    both = one.joined(other)
    assert (both.sums, both.share("Y"), both.number("Y"), both.number("Z")) == (2.0, 0.5, 0.4, 0.2)
    assert len({NO_SLACK.key, one.key, other.key, both.key}) == 4
