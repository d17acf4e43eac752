"""Errors that leave a function of the API come without the frames inside, and with what a plug-in raised."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import autosched
from autosched.errors import AutoschedError
from autosched.store.recorded_space import RecordedPlan, RecordedSpace
from autosched.store.records import STATUSES
from autosched.tiling.step import Decision


class Mistaken:
    def __init__(self, space: Any, seed: int, model: Any) -> None:
        self.space = space

    def propose(self, n: int) -> Any:
        return self.space.candidates(self.space.best(n))

    def observe(self, trials: Any) -> None:
        pass


def test_a_plug_in_s_mistake_takes_few_lines() -> None:
    tile, places, unknown = Decision("tile", (1, 4)), np.array([[0], [1]], np.int32), np.full(2, np.nan)
    status = np.full(2, STATUSES.index("ok"), np.uint8)
    plan = RecordedPlan("mine", (tile,), places, status, np.array([1e-3, 2e-3]), spread=unknown, cost_s=unknown)
    recorded = RecordedSpace("mine", (plan,), device={"name": "a machine"}, legal=2)
    with pytest.raises(AutoschedError, match=r"propose raised AttributeError: .* \(test_tracebacks.py:23\)") as found:
        autosched.simulate(recorded, [Mistaken], trials=2, repeats=1)
    assert len(traceback.extract_tb(found.value.__traceback__)) <= 3
    assert isinstance(found.value.__cause__, AttributeError)
