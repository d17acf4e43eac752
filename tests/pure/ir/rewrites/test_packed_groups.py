"""Scales of groups leave sums of weights that lie two in a byte: the groups are what the greatest divisor makes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from autosched.ir import parse, run
from autosched.ir.rewrites.factors.defer import defer

TEXT = """
def f(X: f32[4, 32], W: u8[16, 6], S: {s}[32 // {g}, 6], Y: f32[4, 6]):
    for i, j in grid(4, 6):
        Y[i, j] = 0
        for p in range(32):
            Y[i, j] += X[i, p] * ((f32(u4(W[p // 2, j] >> u8(p % 2 * 4))) - 8.0) * f32(S[p // {g}, j]))
"""


@pytest.mark.parametrize("scale", ["f32", "f16", "e8m0"])
@pytest.mark.parametrize("g", [2, 8, 16])
def test_the_scale_of_packed_weights_leaves_the_group(g: int, scale: str) -> None:
    program = parse(TEXT.format(g=g, s=scale))
    (verdict,) = defer(program)
    assert verdict.deferred == {"Y": "f32(S[p_group, j_2])" if scale != "f32" else "S[p_group, j_2]"}
    assert verdict.after is not None
    assert f"W[p_group * {g // 2} + p_2 // 2, j_2]" in str(verdict.after) or g == 2
    rng = np.random.default_rng(g)
    numpy = {"f32": np.float32, "f16": np.float16, "e8m0": ml_dtypes.float8_e8m0fnu}[scale]
    data = {
        "X": rng.normal(size=(4, 32)).astype(np.float32),
        "W": rng.integers(0, 256, (16, 6)).astype(np.uint8),
        "S": np.exp2(rng.integers(-3, 4, (32 // g, 6))).astype(numpy),
    }
    weights = np.stack([data["W"] & 15, data["W"] >> 4], axis=1).reshape(32, 6) - 8.0
    want = data["X"].astype(np.float64) @ (weights * np.repeat(data["S"].astype(np.float64), g, axis=0))
    for of in (program, verdict.after):
        assert np.allclose(run(of, data)["Y"], want, rtol=1e-4, atol=1e-3)


def test_divisors_that_do_not_fit_into_each_other_make_no_groups() -> None:
    text = TEXT.format(g=8, s="f32").replace("W[p // 2, j]", "W[p // 3, j]")
    assert not list(defer(parse(text)))
