"""Factors leave sums, masks bound loops, stages move: each program against the one it came from."""

from __future__ import annotations

import numpy as np
import pytest

import autosched
from autosched import ir

NORM = """
def norm(X: f32[m, k], G: f32[k], W: f32[k, n], Y: f32[m, n], *, m=4, k=64, n=8):
    S: f32[m]
    R: f32[m]
    for i in range(m):
        S[i] = 0
        for p in range(k):
            S[i] += X[i, p] * X[i, p]
        R[i] = rsqrt(S[i] / 64 + 0.00001)
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[i, p] * R[i] * G[p] * W[p, j]
"""
SCALED = """
def scaled(A: f32[n, k], s: f32[n], B: f32[k, n], C: f32[n, n], *, n=8, k=32):
    for i, j in grid(n, n):
        C[i, j] = 1
        for p in range(k):
            C[i, j] -= A[i, p] * B[p, j] / s[j]
"""
GROUPS = """
def groups(X: f32[m, k], D: f32[k // 16, n], W: s8[k, n], Y: f32[m, n], *, m=4, k=64, n=8):
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[i, p] * (f32(W[p, j]) * D[p // 16, j])
"""
ZEROS = GROUPS.replace("f32(W[p, j])", "(f32(W[p, j]) - Z[p // 16, j])").replace(
    "W: s8[k, n],", "W: s8[k, n], Z: f32[k // 16, n],"
)
TRIANGLE = """
def triangle(A: f32[n, n], x: f32[n], y: f32[n], *, n=16):
    for i in range(n):
        y[i] = 0
        for j in range(n):
            if j <= i:
                y[i] += A[i, j] * x[j]
"""
WINDOW = """
def window(A: f32[n, n], y: f32[n], *, n=16):
    for i in range(n):
        y[i] = -inf
        for j in range(n):
            y[i] = max(y[i], A[i, j] if j <= i and j > i - 4 else -inf)
"""
ONCE = """
def once(X: f32[m, n], T: f32[m, n], Y: f32[m, n], *, m=4, n=8):
    H: f32[m, n]
    for i, j in grid(m, n):
        H[i, j] = X[i, j] * 2
    for i, j in grid(m, n):
        Y[i, j] = H[i, j] + T[i, j]
"""


@pytest.mark.parametrize(
    ("text", "name", "level", "deferred"),
    [
        (NORM, "online", "rescaled", {"Y": "rsqrt(S[i_2] / 64.0 + 1e-05)"}),
        (SCALED, "defer", "rescaled", {"C": "1.0 / s[j]"}),
        (GROUPS, "defer", "rescaled", {"Y": "D[p_group, j_2]"}),
        (ZEROS, "defer", "rescaled", {"Y": "D[p_group, j_2]"}),
        (TRIANGLE, "mask to bounds", "bitwise", {}),
        (WINDOW, "mask to bounds", "bitwise", {}),
        (ONCE, "inline", "bitwise", {}),
    ],
)
def test_the_program_after_computes_what_the_one_before_does(
    text: str, name: str, level: str, deferred: dict[str, str]
) -> None:
    before = ir.parse(text)
    found = {v.name: v for v in autosched.rewrites(before)}[name]
    assert (found.verdict, found.numerics, found.deferred) == ("proved", level, deferred)
    assert found.after is not None
    assert ir.parse(str(found.after)) == found.after
    data = ir.random_inputs(before, np.random.default_rng(1))
    expected, got = ir.run(before, data), ir.run(found.after, data)
    for tensor in expected:
        if level == "bitwise":
            np.testing.assert_array_equal(got[tensor], expected[tensor])
        else:
            np.testing.assert_allclose(got[tensor], expected[tensor], rtol=1e-4, atol=1e-4)


def test_a_factor_that_makes_the_sum_overflow_is_put_back() -> None:
    before = ir.parse(SCALED)
    (found,) = (v for v in autosched.rewrites(before) if v.name == "defer")
    assert found.after is not None
    data = {"A": np.full((8, 32), 1e30, np.float32), "B": np.full((32, 8), 1e10, np.float32)}
    data["s"] = np.full(8, 1e38, np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ir.run(found.after, data)["C"], ir.run(before, data)["C"])


def test_a_mask_bounds_no_loop_that_another_stage_shares() -> None:
    shared = TRIANGLE + "            A[i, j] = 1\n"
    assert not [v for v in autosched.rewrites(ir.parse(shared)) if v.name == "mask to bounds"]


def test_a_sum_that_may_start_from_minus_zero_keeps_its_mask() -> None:
    text = WINDOW.replace("y[i] = -inf", "y[i] = -0.0").replace("max(y[i], A", "y[i] + (A").replace("-inf)", "0.0)")
    assert not [v for v in autosched.rewrites(ir.parse(text)) if v.name == "mask to bounds"]
