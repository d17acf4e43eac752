"""The clock against rows that a card measured: no constant of it was chosen with these spaces in view."""

import pytest

from benchmarks.gpu.ranking import measured, of_clock, spaces


@pytest.mark.parametrize("name", ["squares/bf16/2048", "squares/s8/4096"])
def test_the_clock_ranks_what_a_card_measured(name):
    rows = measured(next(s for s in spaces() if s["case"] == name))
    assert len(rows.ids) >= 100, "the space has changed: measure its rows again"
    found = of_clock(rows)
    assert found.kendall >= 0.55
    assert found.best_of >= 0.9
