"""Lanes that are parts of words: what is said of words is so in every lane."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.codegen.analysis.word_groups import groups_of
from autosched.codegen.tree.kernel import Lane
from autosched.logic import Bool, Int, Var, all_of, evaluate

L, X, R = Var("l"), Var("x"), Var("r")
PIXEL = (X * 16 + L // 4) // 28 + R - 1
COLUMN = (X * 16 + L // 4) % 28 - 1
INSIDE = all_of(PIXEL >= 0, PIXEL < 28, COLUMN >= 0)
FUSED = X * 4 + L % 4

FOUND: list[tuple[tuple[Int, ...], int, int, Bool | None, int]] = [
    ((PIXEL, COLUMN, R * 4 + L % 4), 1, 64, None, 4),
    ((PIXEL, COLUMN, R * 4 + L % 4), 1, 64, INSIDE, 4),
    ((FUSED // 128, R, FUSED % 128), 1, 16, FUSED // 128 + R < 3, 4),  # a fused axis breaks between words only
    (((X * 8 + L) // 24, (X * 8 + L) % 24), 1, 16, None, 8),
    (((X * 8 + L) // 24, (X * 8 + L) % 24), 2, 16, None, 4),
    (((X * 8 + L) // 36, (X * 8 + L) % 36), 1, 16, None, 4),
    (((X + L // 4) // 28, L % 4), 4, 64, None, 2),
    (((L // 2 + X) // 5, L % 2), 2, 8, ~((L // 2 + X) // 5 < 2), 2),
]
APART: list[tuple[tuple[Int, ...], int, int, Bool | None]] = [
    (((X + L) // 28, (X + L) % 28), 1, 64, None),  # breaks anywhere
    ((PIXEL, COLUMN, R * 4 + L % 4), 1, 64, L < X),  # a word may be wanted in part
    ((L % 4, PIXEL), 1, 64, None),  # not neighbours
    ((PIXEL, L % 4 * 2), 1, 64, None),
    ((L % 4, L % 4), 1, 64, None),  # on a diagonal
    (((X + L // 4) // 28, L % 4), 1, 6, None),
]


@pytest.mark.parametrize(("index", "element_bytes", "width", "formula", "size"), FOUND)
def test_words_are_their_lanes(
    index: tuple[Int, ...], element_bytes: int, width: int, formula: Bool | None, size: int
) -> None:
    found = groups_of(index, element_bytes, Lane("l", width), formula)
    assert found is not None
    assert found.size == size
    lanes = np.arange(width)
    for x in range(9):
        for r in range(3):
            here, there = {"x": x, "r": r, "l": lanes}, {"x": x, "r": r, "l": lanes // size}
            *outer, inner = [np.broadcast_to(evaluate(part, here), width) for part in index]
            *first, start = [np.broadcast_to(evaluate(part, there), width) for part in found.index]
            assert all(np.array_equal(a, b) for a, b in zip(outer, first, strict=True))
            assert np.array_equal(inner, start + lanes % size)
            if formula is not None:
                assert found.formula is not None
                wanted = np.broadcast_to(evaluate(formula, here), width)
                assert np.array_equal(wanted, np.broadcast_to(evaluate(found.formula, there), width))


@pytest.mark.parametrize(("index", "element_bytes", "width", "formula"), APART)
def test_lanes_that_are_no_words(
    index: tuple[Int, ...], element_bytes: int, width: int, formula: Bool | None
) -> None:
    assert groups_of(index, element_bytes, Lane("l", width), formula) is None
