"""A quantity worked out once for each combination of what it reads is the quantity worked out row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from autosched.logic import Var
from autosched.tiling.space.memoize_columns import memoize_columns
from autosched.tiling.space.partial_columns import masked
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Step

SPACE = Space(
    "five",
    [
        Step("a", (Decision("a", (3, 1, 2)), Decision("b", (0, 5))), (), {"ab": Var("a") * Var("b")}),
        Step("c", (Decision("c", (7, 8, 9, 4)), Decision("d", tuple(range(50))), Decision("e", (1, 0)))),
    ],
    {"k": 10},
)


def quantity(v: Mapping[str, Any]) -> tuple[Any, Any]:
    """Reads `c` only where some row has `ab` above 10."""
    more = v["c"] if (v["ab"] > v["k"]).any() else 0 * v["ab"]
    return v["ab"] + more, v["a"] * 2.0


@pytest.mark.parametrize("rows", [np.arange(SPACE.size), np.random.default_rng(0).permutation(SPACE.size)])
def test_once_a_combination_is_row_by_row(rows: Any) -> None:
    for ids in (rows, rows[:7], rows[SPACE.size // 2 :], rows[:0]):
        values = SPACE.values(ids)
        for found, wanted in zip(memoize_columns(values, "q", quantity), quantity(values), strict=True):
            assert np.array_equal(found, np.broadcast_to(wanted, found.shape))


def test_few_combinations_are_worked_out() -> None:
    seen: list[int] = []

    def counted(v: Mapping[str, Any]) -> tuple[Any]:
        seen.append(len(v["ab"]))
        return (v["ab"],)

    memoize_columns(SPACE.values(np.arange(SPACE.size)), "counted", counted)
    assert seen == [1, 6]  # one row to see what is read, then each combination
    assert {SPACE.decisions[p].name for p in SPACE.reads["counted"]} == {"a", "b"}


def test_masked_rows_keep_what_was_named() -> None:
    ids = np.arange(SPACE.size)
    for positions in ([], [0], [1, 2], [0, 2, 4], [4], range(5)):
        rows = SPACE.rows(masked(SPACE, ids, positions))
        for p, decision in enumerate(SPACE.decisions):
            wanted = SPACE.rows(ids)[decision.name] if p in positions else np.zeros(SPACE.size)
            assert np.array_equal(rows[decision.name], wanted)


def test_plain_columns_are_worked_out_as_they_are() -> None:
    columns = {"ab": np.array([4, 20]), "k": np.array([10, 10]), "c": np.array([1, 2]), "a": np.array([0, 1])}
    assert [c.tolist() for c in memoize_columns(columns, "q", quantity)] == [[5, 22], [0.0, 2.0]]
