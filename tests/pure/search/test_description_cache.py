"""What was said of rows not long ago is what would be said of them again, and is not asked for twice."""

from __future__ import annotations

import numpy as np
from conformance.synthetic import clock, make_plan

from autosched.search import SearchSpace
from autosched.search.space.description_cache import FEW, Described, DescriptionCache
from autosched.search.space.rows import Rows

PLANS = [make_plan("a", tiles=4), make_plan("b", 1.3, tiles=5)]


def test_few_rows_are_looked_up_and_others_described() -> None:
    space, fresh = SearchSpace(PLANS, clock), SearchSpace(PLANS, clock)
    asked: list[int] = []

    def describe(rows: Rows) -> Described:
        asked.append(len(rows))
        return fresh._described(rows)

    remembered, rng = DescriptionCache(), np.random.default_rng(0)
    pool = space.locate(rng.permutation(space.rows)[: 4 * FEW])
    others = space.locate(rng.integers(0, space.rows, 7))
    for rows in (pool, pool.take([5, 900, 3]), others, Rows.join([others.take([6, 0]), pool.take([17])]), others):
        features, seconds = remembered.described(rows, describe)
        wanted, analytic = fresh._described(rows)
        assert features.names == wanted.names
        np.testing.assert_array_equal(features.matrix, wanted.matrix)
        np.testing.assert_array_equal(seconds, analytic)
    known = set(zip(pool.plan.tolist(), pool.ids.tolist(), strict=True))
    new = sum(pair not in known for pair in zip(others.plan.tolist(), others.ids.tolist(), strict=True))
    assert asked == [4 * FEW, new]


def test_a_mixture_of_remembered_and_new_rows_keeps_its_order() -> None:
    space = SearchSpace(PLANS, clock)
    rows = space.locate(np.arange(40))
    space.described(rows.take(np.arange(0, 40, 3)))
    features, seconds = space.described(rows)
    wanted, analytic = SearchSpace(PLANS, clock)._described(rows)
    np.testing.assert_array_equal(features.matrix, wanted.matrix)
    np.testing.assert_array_equal(seconds, analytic)
