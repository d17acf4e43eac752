"""Programs with a single tile, or a single element: nothing loops around the instruction."""

from __future__ import annotations

import math

import numpy as np
import pytest

import autosched
from autosched.api import catalogue
from autosched.costmodel.analytic.clock import clock
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

BYTES = {"a": "s8", "b": "s8", "acc": "s32"}
HALVES = {"a": "f16", "b": "f16", "acc": "f32"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("target", "dtypes"), [("x86-avx2", {}), ("x86-avx512", {}), ("nvidia-h100", HALVES), ("gemmini", BYTES)]
)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 64, 1), (1, 1, 64)], ids=str)
def test_every_row_has_a_time(target: str, dtypes: dict[str, str], sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    program = autosched.workload("matmul", m=m, n=n, k=k, **dtypes)
    _, plans = plans_of(TuneRequest(program, autosched.target(target), catalogue=catalogue()))
    assert plans
    for plan in plans:
        ids = plan.space.enumerate().ids[:200]
        seconds = np.asarray(clock(plan, plan.space.values(ids))["total"])
        assert ((seconds > 0) & (seconds < math.inf)).all()


def test_one_element_is_tuned() -> None:
    study = autosched.tune(autosched.workload("matmul", m=1, n=1, k=1), "x86-avx2", device="simulator", trials=3)
    assert study.failed == {}
    assert study.best.time_s > 0
