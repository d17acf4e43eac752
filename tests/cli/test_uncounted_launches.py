"""Beside a lower bound stands what launches take, where it has no room for them."""

from __future__ import annotations

import pytest

from autosched.cli.answers.tune_report import uncounted_launches
from autosched.store.records import Measurement

SIMULATED = Measurement("ok", time_s=13e-6, extra={"model_s": {"launch": 8.8e-6, "total": 13e-6}})


@pytest.mark.parametrize(
    ("count", "bound", "said"),
    [
        (4, 141e-9, "the bound does not count the 4 launches, which take 8.80 µs"),
        (4, 5e-6, "the bound does not count all of the 4 launches, which take 8.80 µs"),
        (1, 0.7e-9, "the bound does not count the launch, which takes 8.80 µs"),
        (4, 8e-6, ""),
        (1, 2.1e-6, ""),
    ],
)
def test_launches_beside_a_bound(count: int, bound: float, said: str) -> None:
    assert uncounted_launches(count, bound, SIMULATED) == ([said] if said else [])


def test_launches_by_the_clock_where_nothing_was_simulated() -> None:
    measured = Measurement("ok", time_s=13e-6)
    assert uncounted_launches(3, 1e-7, measured) == ["the bound does not count the 3 launches, which take 6.00 µs"]
