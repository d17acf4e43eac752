"""The first rows of a search: the clock's best, diverse over what it cannot tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conformance.synthetic import clock, make_plan
from hypothesis import given
from hypothesis import strategies as st

from autosched.costmodel.registry import cost_model
from autosched.search.registry import strategy
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.diversity import ALIKE, diverse, weights_of
from autosched.tiling.plans.plan import Plan

NOTHING = Rows.of(0, [])


def by_tile(plan: Plan, rows: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Tiles of four columns are best, the other widths half a percent apart; rows of a tile tell nothing more, and
    blocks of 16 are hopeless."""
    found = 1.0 - 0.005 * rows["tile_n"] + 0.01 * np.abs(rows["tile_m"] - 5) + 5.0 * (rows["block_k"] == 16)
    return {"total": found}


def first(space: SearchSpace, n: int, taken: Rows = NOTHING) -> Rows:
    rows, seconds = space.best(8000)
    free = np.flatnonzero(~np.isin(rows.ids, taken.ids))
    return diverse(space, rows.take(free), seconds[free], taken, n)


def test_what_the_clock_depends_on_weighs() -> None:
    space = SearchSpace([make_plan("a")], by_tile)
    names = [d.name for d in space.plans[0].plan.space.decisions]
    found = dict(zip(names, weights_of(space, 0).tolist(), strict=True))
    assert sum(found.values()) == pytest.approx(1)
    assert found["tile_m"] + found["tile_n"] > 0.9
    assert found["prefetch"] < 0.02
    assert found["block_k"] < 0.02, "only hopeless rows differ in it"


def test_the_first_rows_have_different_tiles() -> None:
    space = SearchSpace([make_plan("a")], by_tile)
    rows = first(space, 8)
    values = space.plans[0].plan.space.values(rows.ids)
    tiles = set(zip(values["tile_m"].tolist(), values["tile_n"].tolist(), strict=True))
    assert len(tiles) == 8
    best, seconds = space.best(8)
    assert rows.ids[0] == best.ids[0], "the clock's favourite comes first"
    alone = space.plans[0].plan.space.values(best.ids)
    assert len(set(alone["tile_m"].tolist())) == 1, "and would have come eight times"
    assert np.all(space.analytic(rows) <= (1 + ALIKE) * seconds[0])


def test_what_is_taken_is_kept_away_from() -> None:
    space = SearchSpace([make_plan("a")], by_tile)
    one = first(space, 4)
    two = first(space, 4, one)
    values = space.plans[0].plan.space.values(np.concatenate([one.ids, two.ids]))
    assert len(set(zip(values["tile_m"].tolist(), values["tile_n"].tolist(), strict=True))) == 8


@pytest.mark.slow
@given(n=st.integers(0, 12), rows=st.integers(1, 12), equal=st.booleans())
def test_rows_come_once_and_as_many_as_there_are(n: int, rows: int, equal: bool) -> None:
    space = SearchSpace([make_plan("a", tiles=2)], clock)
    some, seconds = space.best(rows)
    found = diverse(space, some, np.zeros_like(seconds) + 1 if equal else seconds, NOTHING, n)
    assert len(found) == len(set(found.ids.tolist())) == min(n, rows)
    assert set(found.ids.tolist()) <= set(some.ids.tolist())


def test_plans_that_the_clock_cannot_tell_apart_each_get_a_place() -> None:
    plans = [make_plan(f"p{i}", 1 + 0.01 * i) for i in range(4)] + [make_plan("slow", 1.5)]
    space = SearchSpace(plans, clock)
    proposed = strategy("draft", space, 0, cost_model("xgb")).propose(4)
    assert {c.plan.name for c in proposed} == {"p0", "p1", "p2", "p3"}
