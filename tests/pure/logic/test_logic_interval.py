"""Bounds of expressions over boxes: nothing that an expression takes lies outside."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.logic import Var, evaluate, interval, minimum

X, Y = Var("x"), Var("y")
RESTS = {
    "by a constant": X % 7,
    "of what may be negative": (X - 5) % 7,
    "by what varies": X % Y,
    "by the rest of a group": X % minimum(11 - Y, 8),
    "twice": X % 12 % minimum(Y, 5),
    "of a quotient": X // Y % 4,
}


@examples(40)
@given(
    x=st.tuples(st.integers(0, 30), st.integers(0, 12)),
    y=st.tuples(st.integers(1, 9), st.integers(0, 1)),
    name=st.sampled_from(sorted(RESTS)),
)
def test_rests_lie_within_their_bounds(x: tuple[int, int], y: tuple[int, int], name: str) -> None:
    ranges = {"x": (x[0], x[0] + x[1]), "y": (y[0], y[0] + y[1])}
    low, high = interval(RESTS[name], ranges)
    found = [
        int(evaluate(RESTS[name], {"x": a, "y": b}))
        for a, b in product(*(range(first, last + 1) for first, last in (ranges["x"], ranges["y"])))
    ]
    assert low <= min(found) <= max(found) <= high


def test_a_rest_that_never_wraps_keeps_its_bounds() -> None:
    assert interval(X % 8, {"x": (9, 14)}) == (1, 6)
    assert interval(X % Y, {"x": (0, 3), "y": (2, 100)}) == (0, 3)


def test_a_divisor_that_may_be_zero_has_no_bounds() -> None:
    with pytest.raises(ValueError, match="no bounds"):
        interval(X % Y, {"x": (0, 3), "y": (0, 2)})
