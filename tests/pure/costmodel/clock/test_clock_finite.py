"""What the clock and the features say of real spaces is finite: learners take an infinite one for an absent one, so a
mistake there shows nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autosched
from autosched import api
from autosched.costmodel.analytic import clock as clocks
from autosched.search import SearchSpace
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    ("matmul", {"m": 33, "n": 64, "k": 40}),
    ("conv2d", {"h": 9, "w": 8, "ci": 16, "co": 24}),
    ("depthwise_conv2d", {"h": 9, "w": 8, "c": 32}),
    ("softmax", {"m": 9, "n": 200}),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "sizes"), PROGRAMS, ids=[name for name, _ in PROGRAMS])
def test_times_and_features_are_finite(name: str, sizes: dict[str, Any]) -> None:
    program = autosched.workload(name, **sizes)
    target, catalogue = api.target("x86-avx512"), api.catalogue()
    _, plans = plans_of(TuneRequest(program, target, store=api.store(":memory:"), catalogue=catalogue))
    space = SearchSpace(plans, clocks.clock, seed=0)
    rows = space.locate(np.random.default_rng(0).integers(0, space.rows, 500))
    features, seconds = space.described(rows)
    assert not [name for name in features.names if np.isinf(features.column(name)).any()]
    assert np.all(np.isfinite(seconds))
    assert np.all(seconds > 0)
