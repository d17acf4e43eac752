"""Names that a rewrite gives: the program that results parses, and computes the same, whatever the original's are."""

from __future__ import annotations

import re

import numpy as np
import pytest

import autosched
from autosched import ir

SOFTMAX = """
def soft(X: f32[3, 7], Y: f32[3, 7]):
    M: f32[3]
    Z: f32[3]
    for i in range(3):
        M[i] = -inf
        for j in range(7):
            M[i] = max(M[i], X[i, j])
        Z[i] = 0
        for k in range(7):
            Z[i] += exp(X[i, k] - M[i])
        for l in range(7):
            Y[i, l] = exp(X[i, l] - M[i]) / Z[i]
"""


@pytest.mark.sampled(13)
@pytest.mark.parametrize("old", ["i", "j", "k", "M", "Z"])
@pytest.mark.parametrize("new", ["inf_2", "max_2", "if_2", "_2", "_", "sat", "bits", "M_before", "j_block", "part"])
def test_names_that_become_words_are_not_taken(old: str, new: str) -> None:
    before = ir.parse(re.sub(rf"\b{old}\b", new, SOFTMAX))
    x = np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32)
    (expected,) = ir.run(before, {"X": x}).values()
    for parts in (1, 2):
        found = autosched.rewrites(before, block=3, parts=parts)[0]
        assert found.after is not None
        (got,) = ir.run(ir.parse(str(found.after)), {"X": x}).values()
        np.testing.assert_allclose(got, expected, rtol=1e-5)
