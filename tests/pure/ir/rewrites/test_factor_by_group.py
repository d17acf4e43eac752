"""Factors that are the same for groups of a sum: applied once a group, and the sum as written where that overflows."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.grouped import grouped_text, wrong_programs

import autosched
from autosched import ir
from autosched.ir.rewrites.factors.defer import defer
from autosched.ir.rewrites.verdict import RewriteVerdict

WEIGHTS = """
def f(X: f32[2, 8], W: s8[8, 3], Z: s8[2, 3], S: f32[2, 3], Y: f32[2, 3]):
    for i, j in grid(2, 3):
        Y[i, j] = 0
        for p in range(8):
            Y[i, j] += X[i, p] * ((f32(W[p, j]) - f32(Z[p // 4, j])) * S[p // 4, j])
"""
AFTER = """\
    for p_group, i_2, j_2 in grid(2, 2, 3):
        Y_group[p_group, i_2, j_2] = 0.0
        for p_2 in range(4):
            Y_group[p_group, i_2, j_2] += X[i_2, p_group * 4 + p_2] * (f32(W[p_group * 4 + p_2, j_2]) - f32(Z[p_group, j_2]))
    for i, j in grid(2, 3):
        Y[i, j] = 0.0
        for p_3 in range(2):
            Y[i, j] += Y_group[p_3, i, j] * S[p_3, j]
    for i_3, j_3 in grid(2, 3):
        Y_as_written[i_3, j_3] = (u8(0) if abs(Y[i_3, j_3]) < inf else 1)
    for i_4, j_4 in grid(2, 3):
        Y[i_4, j_4] = (Y[i_4, j_4] if abs(Y[i_4, j_4]) < inf else 0.0)
    for i_5, j_5 in grid(2, 3):
        if Y_as_written[i_5, j_5] != 0:
            for p in range(8):
                Y[i_5, j_5] += X[i_5, p] * ((f32(W[p, j_5]) - f32(Z[p // 4, j_5])) * S[p // 4, j_5])
"""  # noqa: E501


def deferred(text: str) -> RewriteVerdict:
    (found,) = (v for v in autosched.rewrites(ir.parse(text)) if v.name == "defer")
    return found


def test_at_real_nothing_is_checked_and_factors_are_multiplied_first() -> None:
    scaled = WEIGHTS.replace("* S[p // 4, j])", "* S[p // 4, j]) * R[i, p // 4]")
    text = scaled.replace("Y: f32", "R: f32[2, 2], Y: f32")
    (found,) = defer(ir.parse(text), checked=False)
    assert (found.numerics, found.error) == ("real", None)
    assert found.relies == ("sums of groups of Y are finite, and so are products of their factors",)
    assert found.because[-1] == f"{found.relies[0]} (assumed)"
    assert str(found.after).endswith("            Y[i, j] += Y_group[p_3, i, j] * (R[i, p_3] * S[p_3, j])\n")


def test_the_program_after() -> None:
    found = deferred(WEIGHTS)
    assert (found.axis, found.stages, found.numerics) == ("p", ("Y",), "rescaled")
    assert str(found.after).endswith(AFTER)


def test_conditions_on_the_axis_are_of_the_group() -> None:
    found = deferred(WEIGHTS.replace("(f32(W[p, j]) - f32(Z[p // 4, j]))", "(f32(W[p, j]) if p < 7 else 0.0)"))
    assert ir.parse(str(found.after)) == found.after
    assert "if p_group * 4 + p_2 < 7" in str(found.after)


def test_one_group_is_a_group() -> None:
    found = deferred(WEIGHTS.replace("// 4", "// 8").replace("[2, 3], S: f32[2, 3]", "[1, 3], S: f32[1, 3]"))
    assert found.deferred == {"Y": "S[p_group, j_2]"}


@pytest.mark.parametrize(("x", "s"), [(3e36, 1e-3), (1.0, np.inf), (np.nan, 1.0), (1e38, np.inf)])
def test_a_sum_that_is_not_finite_is_computed_as_written(x: float, s: float) -> None:
    before, found = ir.parse(WEIGHTS), deferred(WEIGHTS)
    assert found.after is not None
    data = ir.random_inputs(before, np.random.default_rng(2))
    data["X"][1, 5], data["W"][:, 0], data["Z"][:] = x, 127, -1
    data["X"][1, :5], data["S"][1, 0] = x if np.isfinite(x) else 1.0, s
    with np.errstate(all="ignore"):
        expected, got = ir.run(before, data)["Y"], ir.run(found.after, data)["Y"]
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def test_random_programs() -> None:
    assert not list(wrong_programs(0, 25))


@pytest.mark.slow
def test_more_random_programs() -> None:
    """`python -m tests.fuzz.grouped` looks at others."""
    assert not list(wrong_programs(0, 60))
    assert not list(wrong_programs(5000, 500))


@pytest.mark.slow
def test_programs_are_of_many_kinds() -> None:
    texts = [grouped_text(seed) for seed in range(300)]
    for part in ("W: u4", "if G[", "if p <=", "-= ", "= B[j]", "/ S", "R[i, p // ", "H[p //", "V[p, j]", "- 8.0"):
        assert sum(part in t for t in texts) >= 5, part
    found = [v for t in texts for v in autosched.rewrites(ir.parse(t)) if v.name == "defer"]
    assert sum(v.numerics == "rescaled" for v in found) > 100
    assert sum(v.numerics == "real" for v in found) > 2
