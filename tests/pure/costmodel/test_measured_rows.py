"""The clock and the simulator against rows that a card measured. No constant of the clock was chosen with the last of
these spaces in view, none of the simulator with the second."""

import pytest

from benchmarks.gpu.ranking import measured, of_clock, of_simulator, spaces

SEEN, LATER = ("squares/bf16/2048", "squares/s8/4096", "llm/f16/128x7168x2112"), ("llm/e4m3/128x7168x2112",)


@pytest.mark.parametrize("name", [*SEEN, *LATER])
def test_the_clock_ranks_what_a_card_measured(name):
    rows = measured(spaces()[name])
    assert len(rows.ids) >= 100, "the space has changed: measure its rows again"
    found = of_clock(rows)
    assert found.kendall >= 0.6
    assert found.best_of >= 0.9


@pytest.mark.slow
def test_the_simulator_ranks_what_a_card_measured():
    rows = measured(spaces()["squares/s8/4096"])
    assert of_simulator(rows, most=80).kendall >= 0.6
