"""Stages that a rewrite moves: each order that would change what is computed is refused."""

from __future__ import annotations

import numpy as np
import pytest

import autosched
from autosched import ir

HEAD = """
def rows(X: f32[n, l], P: f32[n, l], Z: f32[n], Y: f32[n, l], *, n=4, l=12):
    M: f32[n]

"""
MAXIMA = """
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
"""
SUMS = """
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
"""
INLINED = """
    for i, j in grid(n, l):
        P[i, j] = exp(X[i, j] - M[i])
    {between}
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += P[i, j]
"""
OVERWRITTEN = """
    for i, j in grid(n, l):
        X[i, j] = 2
"""
DOUBLED = """
    for i, j in grid(n, l):
        Y[i, j] = X[i, j] * 2
"""


@pytest.mark.parametrize(
    ("text", "applies"),
    [
        (MAXIMA + SUMS, True),
        (MAXIMA + DOUBLED + SUMS, True),
        (MAXIMA + SUMS + OVERWRITTEN, False),
        (MAXIMA + OVERWRITTEN + SUMS, False),
        (OVERWRITTEN + MAXIMA + SUMS, True),
        (MAXIMA + INLINED.format(between=""), True),
        (MAXIMA + INLINED.format(between=OVERWRITTEN.strip()), False),
        (MAXIMA + SUMS.replace("Z[i] = 0", "Z[i] = exp(Y[i, 0] - M[i])"), True),
    ],
)
def test_what_is_moved_computes_the_same(text: str, applies: bool) -> None:
    before = ir.parse(HEAD + text)
    found = autosched.rewrites(before)[0]
    assert (found.name, found.verdict) == ("online", "proved" if applies else "no")
    if found.reason is not None:
        assert found.reason.code == "DEPENDS"
        return
    assert found.after is not None
    data = ir.random_inputs(before, np.random.default_rng(0))
    expected, got = ir.run(before, data), ir.run(found.after, data)
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5)


def test_a_start_that_needs_a_later_result_is_refused() -> None:
    later = """
    for i in range(n):
        P[i, 0] = Z[i] * 2
    for i in range(n):
        Y[i, 0] = P[i, 0]
        for j in range(l):
            Y[i, 0] += exp(X[i, j] - M[i])
"""
    found = [v for v in autosched.rewrites(ir.parse(HEAD + MAXIMA + SUMS + later)) if v.name == "online"]
    assert all("Y" not in v.stages for v in found if v.verdict == "proved")
