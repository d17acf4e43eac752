"""Rows that a mask empties: no number as the program is written, which needs no sum."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.paths import ROOT

import autosched
from autosched import ir
from autosched.ir.program import Program

SOFTMAX = """
def f(X: f32[4, 6], V: f32[6, 5], G: u8[4, 6], A: f32[4, 5]):
    M: f32[4]
    for i in range(4):
        M[i] = -inf
        for j in range(6):
            M[i] = max(M[i], X[i, j] if G[i, j] != 0 else -inf)
    for i, e in grid(4, 5):
        A[i, e] = 0
        for j in range(6):
            A[i, e] += TERM * V[j, e]
"""
EXACT = "exp((X[i, j] if G[i, j] != 0 else -inf) - M[i])"
NONE = "= f32(inf) - inf"


def in_one_pass(text: str) -> tuple[Program, Program]:
    before = ir.parse(text)
    found = next(v for v in autosched.rewrites(before, block=2, tile=4) if v.name == "online")
    assert found.after is not None, found.reason
    return before, found.after


@pytest.mark.parametrize("kept", [0, 1, 6])
def test_an_empty_row_is_no_number(kept: int) -> None:
    before, after = in_one_pass(SOFTMAX.replace("TERM", EXACT))
    assert NONE in str(after)
    rng = np.random.default_rng(kept)
    data = ir.random_inputs(before, rng)
    data["G"] = (rng.permuted(np.tile(np.arange(6), (4, 1)), axis=1) < kept).astype(np.uint8)
    data["G"][1] = 1
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ir.run(after, data)["A"], ir.run(before, data)["A"], rtol=1e-5, atol=1e-6)


def test_a_row_that_holds_what_is_no_number() -> None:
    before, after = in_one_pass(SOFTMAX.replace("TERM", EXACT))
    data = ir.random_inputs(before, np.random.default_rng(3))
    data["X"][0, 2], data["V"][1, 3], data["G"][:], data["G"][2] = np.nan, np.inf, 1, 0
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(ir.run(after, data)["A"]), np.isnan(ir.run(before, data)["A"]))


@pytest.mark.parametrize("change", [("A[i, e] = 0", "A[i, e] = V[0, e]"),
                                    ("range(6):\n            A", "range(i):\n            A")])  # fmt: skip
def test_sums_that_may_be_numbers_are_computed(change: tuple[str, str]) -> None:
    """A sum that starts from data, or may have no term."""
    text = SOFTMAX.replace("TERM", EXACT).replace(*change)
    before = ir.parse(text)
    for found in autosched.rewrites(before, block=2, tile=4):
        assert found.after is None or NONE not in str(found.after)


def test_rows_share_what_is_computed_again() -> None:
    """Scores of a row are computed once for all of its elements."""
    before = ir.parse((ROOT / "examples" / "fused" / "attention_offsets.py").read_text(), sizes={"n": 8, "d": 4})
    found = next(v for v in autosched.rewrites(before, block=4, tile=8) if v.name == "online")
    again = str(found.after).rsplit("A_as_written_row[b, ", 1)[1]
    *_, start, scores, sums = re.split(r"for [ej]_\d+ in ", again)
    assert ("S_block[" in start, "S_block[" in scores, "exp(" in sums) == (False, True, True)
