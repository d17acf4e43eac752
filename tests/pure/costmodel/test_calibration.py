"""How sure learned models are: shares of rows within what was predicted; doubt grows away from measured ones."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.synthetic import clock, make_plan, measured

from autosched.costmodel import cost_model
from autosched.costmodel.accuracy.metrics import coverage
from autosched.costmodel.learned.calibration import Doubt, folds
from autosched.search import SearchSpace


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", ["xgb", "forest"])
@pytest.mark.parametrize("rows", [16, 64])
def test_four_of_five_rows_lie_in_the_central_80_percent(model: str, rows: int) -> None:
    """On average over seeds, of rows that were not measured; without calibration it is 20 to 60 %."""
    space = SearchSpace([make_plan("a", tiles=6), make_plan("b", 1.3, tiles=5)], clock)
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        drawn = space.locate(rng.choice(space.rows, rows + 1000, replace=False))
        train, test = (measured(space, drawn.take(np.arange(*ends))) for ends in ((0, rows), (rows, rows + 1000)))
        made = cost_model(model, seed)
        made.fit(train)
        said = made.predict(test.features, test.analytic_s)
        shares.append(coverage(said.log_s, said.sigma, test.time_s))
    assert 0.65 < np.mean(shares) < 0.95


def test_doubt_grows_away_from_measured_rows_and_not_without_end() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 5)).astype(np.float32)
    doubt = Doubt.of(rows, rng.normal(0, 0.1, 40), 0.5)
    at, near, far, further = (float(doubt.at(rows[:1] + np.float32(step))[0]) for step in (0.0, 1.0, 20.0, 400.0))
    assert at < near < far == further
    assert doubt.at(np.full((1, 5), np.nan, np.float32)).shape == (1,)


def test_doubt_is_larger_where_errors_were() -> None:
    rows = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 5.0)]) + np.random.default_rng(1).normal(0, 0.3, (40, 2))
    doubt = Doubt.of(rows.astype(np.float32), np.repeat([0.02, 0.6], 20), 0.5)
    quiet, loud = doubt.at(np.array([[0.0, 0.0], [5.0, 5.0]], np.float32))
    assert loud > 3 * quiet


def test_without_errors_the_prior_holds() -> None:
    nothing = Doubt.of(np.ones((3, 4), np.float32), np.full(3, np.nan), 0.5)
    np.testing.assert_allclose(nothing.at(np.zeros((2, 4), np.float32)), 0.25)


def test_parts_are_even() -> None:
    part = folds(23, 5, np.random.default_rng(0))
    assert sorted(np.bincount(part).tolist()) == [4, 4, 5, 5, 5]
