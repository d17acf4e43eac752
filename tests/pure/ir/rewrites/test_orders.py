"""One pass moves stages: programs whose order of reads and writes forbids it, and those where it does not."""

from __future__ import annotations

import numpy as np
import pytest

import autosched
from autosched import ir
from autosched.ir.rewrites.verdict import RewriteVerdict

HEAD = "def f(X: f32[n, l], Y: f32[n, l], P: f32[n, l], M: f32[n], A: f32[n], B: f32[n], *, n=3, l=7):\n"
MAXIMUM = """
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
"""
SUM = """
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[i])
"""
DOUBLED = """
    for i, j in grid(n, l):
        X[i, j] = X[i, j] * 2
"""
COPIED = "\n    for i in range(n):\n        B[i] = M[i]\n"
STARTS_FROM_B = """
    for i in range(n):
        A[i] = B[i]
    for i in range(n):
        B[i] = 5
"""
READ_BETWEEN = """
    for i in range(n):
        A[i] = 1
    for i in range(n):
        B[i] = A[i]
"""
ADDED = "\n    for i, j in grid(n, l):\n        A[i] += exp(X[i, j] - M[i])\n"
SAME_LOOP = """
    for i in range(n):
        M[i] = -inf
        A[i] = 0
        for j in range(l):
            M[i] = max(M[i], X[i, j])
            A[i] += exp(X[i, j] - M[i])
"""
NEXT_ROW = """
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[(i + 1) % 3, j])
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[(i + 1) % 3, j] - M[i])
        for j in range(l):
            X[i, j] = exp(X[i, j] - M[i]) / A[i]
"""
STARTS_FROM_A_MAXIMUM = """
    for i in range(n):
        B[i] = M[i]
        for j in range(l):
            B[i] = max(B[i], Y[i, j])
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - B[i]) * exp(Y[i, j] - M[i])
"""
DATA_STARTS_FROM_A_MAXIMUM = """
    for i, j in grid(n, l):
        P[i, j] = M[i]
        for k in range(l):
            P[i, j] += Y[i, k]
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[i]) * P[i, j]
"""
PART = """
    for i in range(n):
        for j in range(1, l):
            P[i, j] = exp(X[i, j] - M[i])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += P[i, j]
"""
LATER = """
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += P[i, j]
    for i, j in grid(n, l):
        P[i, j] = exp(X[i, j] - M[i])
"""
IN_PLACE = SUM + """
    for i, j in grid(n, l):
        X[i, j] = exp(X[i, j] - M[i]) / A[i]
"""
IN_PLACE_ONE_NEST = """
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[i])
        for j in range(l):
            X[i, j] = exp(X[i, j] - M[i]) / A[i]
"""


def one_pass(body: str) -> list[RewriteVerdict]:
    return [v for v in autosched.rewrites(ir.parse(HEAD + body), block=3) if v.name == "online"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (MAXIMUM + DOUBLED + SUM, "DEPENDS"),
        (MAXIMUM + SUM + DOUBLED, "DEPENDS"),
        (SUM + MAXIMUM, "DEPENDS"),
        (COPIED + MAXIMUM + SUM, "DEPENDS"),
        (STARTS_FROM_B + MAXIMUM + ADDED, "DEPENDS"),
        (READ_BETWEEN + MAXIMUM + ADDED, "DEPENDS"),
        (SAME_LOOP, "DEPENDS"),
        (NEXT_ROW, "DEPENDS"),
        (MAXIMUM + STARTS_FROM_A_MAXIMUM, "UNSUPPORTED"),
        (MAXIMUM + DATA_STARTS_FROM_A_MAXIMUM, "DEPENDS"),
    ],
)
def test_an_order_that_matters_is_kept(body: str, code: str) -> None:
    (found,) = one_pass(body)
    assert found.reason is not None
    assert (found.verdict, found.reason.code) == ("no", code)


@pytest.mark.parametrize("body", [MAXIMUM + PART, MAXIMUM + LATER])
def test_what_is_written_in_part_or_later_is_not_filled_in(body: str) -> None:
    assert not one_pass(body)


@pytest.mark.parametrize("body", [MAXIMUM + IN_PLACE, IN_PLACE_ONE_NEST])
def test_softmax_in_place(body: str) -> None:
    before = ir.parse(HEAD + body)
    found = one_pass(body)[0]
    assert found.after is not None
    data = ir.random_inputs(before, np.random.default_rng(0))
    expected, got = (ir.run(p, data)["X"] for p in (before, found.after))
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("term", "level"),
    [
        ("exp(X[i, j] - M[i]) / B[i] * Y[i, j]", "rescaled"),
        ("exp(X[i, j] - M[i]) / B[i] * sqrt(Y[i, j]) * sqrt(Y[i, j])", "real"),
        ("exp(X[i, j] - M[i]) / B[i] * (Y[i, j] / Y[i, j])", "real"),
        ("exp(X[i, j] - M[i]) / B[i] * (Y[i, j] - Y[i, j] + 1)", "real"),
        ("exp(X[i, j]) / exp(M[i]) / B[i]", "real"),
        ("exp(X[i, j] - (M[i] + log(B[i])))", "rescaled"),
    ],
)
def test_a_law_that_drops_what_is_no_number_needs_the_weakest_level(term: str, level: str) -> None:
    body = MAXIMUM + SUM.replace("A[i]", "B[i]") + SUM.replace("exp(X[i, j] - M[i])", term)
    (found,) = one_pass(body)
    assert (found.verdict, found.numerics) == ("proved", level)
    assert (found.error is None) == (level == "real")


def test_a_logarithm_of_what_may_be_negative_needs_the_weakest_level() -> None:
    sums = SUM.replace("A[i]", "B[i]").replace("M[i])", "M[i]) * Y[i, j]")
    (found,) = one_pass(MAXIMUM + sums + SUM.replace("- M[i]", "- (M[i] + log(B[i]))"))
    assert (found.verdict, found.numerics) == ("proved", "real")


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_a_maximum_of_a_narrower_type(dtype: str) -> None:
    text = (HEAD + MAXIMUM + SUM).replace("X: f32", f"X: {dtype}").replace("M: f32", f"M: {dtype}")
    before = ir.parse(text.replace("exp(X[i, j] - M[i])", "exp(f32(X[i, j]) - f32(M[i]))"))
    (found,) = (v for v in autosched.rewrites(before, block=3) if v.name == "online")
    assert (found.verdict, found.numerics) == ("proved", "rescaled")
    assert found.after is not None
    assert ir.parse(str(found.after)) == found.after
    data = ir.random_inputs(before, np.random.default_rng(0))
    np.testing.assert_allclose(ir.run(found.after, data)["A"], ir.run(before, data)["A"], rtol=1e-5)
