"""The fastest rows of a recording are measured once more, in turn: a lucky one loses its place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from conformance.synthetic import SyntheticDevice, make_plan

from autosched.device.protocol import Build
from autosched.search.tuning import remeasure as nearest
from autosched.search.tuning.remeasure import NEAR, raced
from autosched.store import Measurement
from autosched.tiling.candidate import Candidate

PLAN = make_plan("a", tiles=4)
TRUE = [4.0, 1.2, 1.1, 1.3, 5.0]
"""Milliseconds of rows 0, 1, … in turn."""


class InTurn(SyntheticDevice):
    """Answers from TRUE; every second race is disturbed."""

    def __init__(self) -> None:
        super().__init__()
        self.races: list[list[int]] = []

    def measure_interleaved(self, builds: Sequence[Build], rounds: int) -> list[Measurement]:
        rows = [b.candidate.row for b in builds]
        slow = 1.5 if len(self.races) == 1 else 1.0
        self.races.append(rows)
        times = [TRUE[row] * slow * 1e-3 for row in rows]
        return [Measurement("ok", time_s=t, samples_s=(t,) * rounds) for t in times]


def measured(*milliseconds: float | None) -> list[Measurement]:
    return [
        Measurement("crash") if t is None else Measurement("ok", time_s=t * 1e-3, costs_s={"build": float(row)})
        for row, t in enumerate(milliseconds)
    ]


CANDIDATES = [Candidate(PLAN, row) for row in range(len(TRUE))]


def test_a_lucky_row_gets_the_time_that_it_has_in_turn() -> None:
    device = InTurn()
    before = measured(0.5, 0.6, 0.55, 0.65, 0.5 * NEAR + 0.01)  # when the machine was twice as fast
    found = raced(device, CANDIDATES, before, np.random.default_rng(0))
    assert [m.time_s for m in found] == pytest.approx([*(t * 0.5e-3 for t in TRUE[:4]), before[4].time_s])
    assert [m.costs_s for m in found] == [m.costs_s for m in before]
    assert len(device.races) == nearest.RACES
    assert all(sorted(rows) == [0, 1, 2, 3] for rows in device.races)


def test_at_most_so_many_take_part() -> None:
    device = InTurn()
    raced(device, CANDIDATES, measured(1.3, 1.2, None, 1.4, 1.25), np.random.default_rng(0), most=2)
    assert all(sorted(rows) == [1, 4] for rows in device.races)


def test_what_cannot_be_measured_in_turn_stays() -> None:
    before = measured(1.0, 1.1)
    assert raced(SyntheticDevice(), CANDIDATES[:2], before, np.random.default_rng(0)) == before
    device, failed = InTurn(), measured(None, None)
    assert raced(device, CANDIDATES[:2], failed, np.random.default_rng(0)) == failed
    assert not device.races
