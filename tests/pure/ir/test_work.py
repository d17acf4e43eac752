"""Operations: what the program needs, and not what masks leave out or what is the same along a loop."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.ir import parse, workload
from autosched.ir.oracle.interpreter import run
from autosched.ir.work import operations, steps

SUM = """
def f(X: f32[n, m], G: f32[n], W: f32[m, l], Y: f32[n, l], *, n=6, m=8, l=5):
    for i, e in grid(n, l):
        Y[i, e] = 0
        for j in range({bound}):
            {term}
"""
EACH, ALL = 6 * 8, 6 * 8 * 5


@pytest.mark.parametrize(
    ("bound", "term", "counted"),
    [
        ("m", "Y[i, e] += X[i, j] * W[j, e]", 2 * ALL),
        ("m", "Y[i, e] += X[i, j] * G[i] * W[j, e]", 2 * ALL + EACH),
        ("m", "Y[i, e] += exp(X[i, j] - G[i]) * W[j, e]", 2 * ALL + 2 * EACH),
        ("m", "Y[i, e] += (X[i, j] - W[j, e]) * (X[i, j] - W[j, e])", 3 * ALL),
        ("m", "Y[i, e] += X[i, j] * rsqrt(G[i] / 3.0)", 2 * 6 + EACH + ALL),
        ("i + 1", "Y[i, e] += X[i, j] * W[j, e]", 2 * 21 * 5),
        ("m", "if j <= i:\n                Y[i, e] += X[i, j] * W[j, e]", 2 * 21 * 5),
        ("m", "Y[i, e] += X[i, j] * W[j, e] if j <= i else 0.0", 2 * 21 * 5),
        ("m", "Y[i, e] += exp((X[i, j] if j <= i else -inf) - G[i]) / G[i] * W[j, e]", 2 * 21 * 5 + 3 * 21),
        ("m", "Y[i, e] += (X[i, j] if j <= i else 1.0) * W[j, e]", 2 * ALL),
        ("m", "Y[i, e] = max(Y[i, e], X[i, j] * G[i] if 2 <= j else 0.0)", ALL + EACH),
    ],
)
def test_what_counts(bound: str, term: str, counted: int) -> None:
    assert operations(parse(SUM.format(bound=bound, term=term))) == counted


CAUSAL = """
def causal(Q: f32[n, d], K: f32[n, d], V: f32[n, d], O: f32[n, d], *, n=8, d=4):
    S: f32[n, n]
    P: f32[n, n]
    for i, j in grid(n, n):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
    for i, j in grid(n, n):
        P[i, j] = exp(S[i, j] if j <= i else -inf)
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(n):
            O[i, e] += P[i, j] * V[j, e]
"""


def test_a_mask_is_felt_before_and_behind_the_stage_that_has_it() -> None:
    program = parse(CAUSAL)
    assert operations(program) == 36 * (2 * 4 + 1 + 2 * 4)
    assert steps(program) == 64 * (2 * 4 + 1 + 2 * 4)
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=(8, 4)).astype("f4") for name in "QKV"}
    whole = run(program, data)["O"]
    bounded = CAUSAL.replace("O[i, e] += P", "if j <= i:\n                O[i, e] += P")
    np.testing.assert_array_equal(whole, run(parse(bounded), data)["O"])
    seen = CAUSAL.replace("    S: f32[n, n]\n", "").replace("O: f32[n, d],", "O: f32[n, d], S: f32[n, n],")
    assert operations(parse(seen)) == 64 * 2 * 4 + 36 * (1 + 2 * 4)  # all scores are a result


def test_factors_do_not_change_the_count_of_a_product() -> None:
    factored = """
def f(X: f32[n, m], G: f32[n], W: f32[m, l], Y: f32[n, l], *, n=6, m=8, l=5):
    F: f32[n, m]
    for i, j in grid(n, m):
        F[i, j] = X[i, j] * G[i]
    for i, e in grid(n, l):
        Y[i, e] = 0
        for j in range(m):
            Y[i, e] += F[i, j] * W[j, e]
"""
    plain = SUM.format(bound="m", term="Y[i, e] += X[i, j] * G[i] * W[j, e]")
    assert operations(parse(factored)) == operations(parse(plain))


def test_large_masks_are_counted_on_a_grid() -> None:
    program = workload("attention", mask="causal", h=1, n=4096, l=4096, d=64)
    whole = workload("attention", h=1, n=4096, l=4096, d=64)
    assert operations(program) / operations(whole) == pytest.approx(0.5, abs=0.01)
