"""Intermediates without dimensions of one element."""

from __future__ import annotations

import numpy as np
import pytest

from autosched import ir
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.unit_dimensions import drop_unit_dimensions

ROWS = """
def rows(X: f32[h, n, 5], Y: f32[h, n], *, h=3, n=1):
    M: f32[h, n]
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(5):
            M[b, i] = max(M[b, i], X[b, i, j])
    for b, i in grid(h, n):
        if M[b, i] > 0.0:
            Y[b, i] = M[b, i] * 2.0
"""


def test_intermediates_lose_them_and_parameters_keep_them() -> None:
    before, _ = simplify(ir.parse(ROWS))
    found = drop_unit_dimensions(before)
    assert found is not None
    assert found.after.tensors["M"].extents == (3,)
    assert found.after.tensors["Y"].extents == (3, 1)
    text = str(found.after)
    assert "M[b] = max(M[b], X[b, 0, j])" in text
    assert "if M[b_2] > 0.0:" in text
    assert ir.parse(text) == found.after
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(3, 1, 5)).astype(np.float32), "Y": np.zeros((3, 1), np.float32)}
    data = {name: data[name] for name in before.inputs}
    np.testing.assert_array_equal(ir.run(before, data)["Y"], ir.run(found.after, data)["Y"])


@pytest.mark.parametrize(("sizes", "simple"), [({"n": 2}, True), ({}, False)], ids=["two elements", "a loop runs once"])
def test_what_a_loop_counts_stays(sizes: dict[str, int], simple: bool) -> None:
    program = ir.parse(ROWS, sizes=sizes)
    assert drop_unit_dimensions(simplify(program)[0] if simple else program) is None


def test_one_dimension_stays() -> None:
    program = ir.parse("def f(X: f32[1], Y: f32[1]):\n    S: f32[1, 1]\n    S[0, 0] = X[0]\n    Y[0] = S[0, 0]\n")
    found = drop_unit_dimensions(program)
    assert found is not None
    assert found.after.tensors["S"].extents == (1,)
