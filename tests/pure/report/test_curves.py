"""Performance as a function of the budget, in tables and pictures that hide nothing."""

from __future__ import annotations

import numpy as np
import pytest
from support.paths import TESTS

import autosched
from autosched.errors import UsageError
from autosched.report.coinciding import LOWEST, labelled
from autosched.report.comparison import StrategyComparison
from autosched.report.exchange import as_json
from autosched.report.html import comparison_html
from autosched.report.over_spaces import over_spaces

CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"


@pytest.fixture(scope="module")
def table() -> StrategyComparison:
    return autosched.simulate(CACHE, ["random", "ils", "genetic"], trials=16, repeats=5)


def test_areas_for_stated_budgets(table: StrategyComparison) -> None:
    found = table.summary(checkpoints=[4, 16]).strategies
    assert table.performance is not None
    for one in found:
        curve = table.performance.over_trials[one.strategy]
        assert one.areas[4].value == pytest.approx(curve[:, :4].mean())
        assert one.performance is not None
        assert one.areas[16].value == pytest.approx(one.performance.value)
        assert set(one.areas_of_time) == {4, 16}
        assert one.performance_of_time is not None
        assert one.areas_of_time[16].value == pytest.approx(one.performance_of_time.value)
    assert found[0].areas[4].value != found[0].areas[16].value


def test_trials_and_time_are_apart(table: StrategyComparison) -> None:
    text = table.text(checkpoints=[4, 16])
    _, trials, time, *_ = text.split("\n\n")[1:]
    assert trials.startswith("performance over trials (0: random search, 1: optimum)\nstrategy  to 4 ")
    assert time.startswith("performance over time\nstrategy  to ")
    assert table.landscape is not None
    until = table.summary(checkpoints=[4, 16]).until_s
    assert until[16] == pytest.approx(4 * until[4]) == pytest.approx(16 * table.landscape.cost_s)


def test_what_strategies_take_changes_no_result(table: StrategyComparison) -> None:
    """Everything that is told or written is the same with the next run, and the checksum even where thinking counts."""
    again = autosched.simulate(CACHE, ["random", "ils", "genetic"], trials=16, repeats=5)
    assert again.rows == table.rows
    assert as_json(again) == as_json(table)
    thought = autosched.simulate(CACHE, ["random", "ils", "genetic"], trials=16, repeats=5, thinking=True)
    assert thought.rows != table.rows
    assert thought.checksum == table.checksum == as_json(table)["checksum"]
    assert f"results {table.checksum}" in str(table)
    other = autosched.simulate(CACHE, ["random", "ils", "genetic"], trials=16, repeats=range(5, 10))
    assert other.checksum != table.checksum


def test_curves_that_a_picture_would_hide_are_named() -> None:
    x = np.arange(1.0, 5.0)
    found = labelled({"a": x, "b": x + 1e-6, "c": x, "d": x - 2.9, "e": x[::-1]}, x, LOWEST)
    assert [f.label for f in found.values()] == ["a", "b (as a)", "c (as a)", "d (below -0.5 up to 2)", "e"]
    assert found["d"].outside.tolist() == [1.0, 2.0]
    twice = labelled({"a": np.array([-1.0, 0.0, 0.0, -1.0])}, x, LOWEST)  # between the two it is inside
    assert twice["a"].label == "a (below -0.5 now and then up to 4)"
    gone = np.array([np.nan, 1.0, 1.0, 1.0])
    assert labelled({"a": gone, "b": gone, "c": np.ones(4)}, x)["b"].like == "a"
    assert labelled({"a": gone, "b": np.ones(4)}, x)["b"].like is None


@pytest.mark.slow
def test_a_plot_marks_them() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from autosched.report import plots
    from autosched.report.performance import Performance

    low = np.tile([-3.0, 0.5, 0.6], (2, 1))
    found = Performance({"a": low, "b": low, "c": np.ones((2, 3))}, {}, np.zeros(0))
    axes = plots.performance(found)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["a (below -0.5 up to 1)", "b (as a, below -0.5 up to 1)", "c"]
    marks = [line for line in axes.lines if line.get_marker() == "v"]
    assert [line.get_xdata().tolist() for line in marks] == [[1.0], [1.0]]
    assert {line.get_linestyle() for line in axes.lines if line.get_label().startswith("b")} == {"--"}


def test_reports_are_in_microseconds_and_mark_what_coincides(table: StrategyComparison) -> None:
    page = comparison_html(autosched.simulate(CACHE, ["random", "ils"], trials=8, repeats=1))
    assert "µs (median)" in page
    assert "Differences, paired by seed" in page
    assert "one seed" in page
    assert " ms" not in comparison_html(table).partition("<h2>Strategies")[2].partition("<h2>Differences")[0]


def test_tables_in_notebooks(table: StrategyComparison) -> None:
    for shown in (table._repr_html_(), table.summary()._repr_html_()):
        assert shown.count("<table>") == 3
        assert "µs [" in shown
        assert "<h3>performance over time</h3>" in shown
    shown = over_spaces([table, table])._repr_html_()
    assert shown.count("<table>") == 1
    assert "2 spaces, 5 seeds" in shown


def test_curves_of_several_spaces(table: StrategyComparison) -> None:
    """Their mean by trial with a band over spaces, up to the shortest run; budgets are stated as for one space."""
    short = autosched.simulate(CACHE, ["random", "ils", "genetic"], trials=12, repeats=5)
    both = over_spaces([table, short], budgets=[4, 12])
    assert table.performance is not None
    assert short.performance is not None
    for name, curves in both.curves.items():
        assert curves.shape == (2, 12)
        mine = [p.over_trials[name][:, :12].mean(axis=0) for p in (table.performance, short.performance)]
        assert curves == pytest.approx(np.array(mine))
        assert both.until[12][name].value == pytest.approx(curves.mean())
    assert "up to 4" in str(both)
    with pytest.raises(UsageError, match="longest runs have 16 trials"):
        over_spaces([table, short], budgets=[17])


def test_a_short_space_refuses_no_budget_that_others_have(table: StrategyComparison) -> None:
    short = autosched.simulate(CACHE, ["random", "ils", "genetic"], trials=12, repeats=5)
    one = over_spaces([table, short], budgets=[4, 16])
    assert list(one.until) == [4]
    assert "up to 16: one space has so many trials, see its table" in str(one)
    two = over_spaces([table, short, table], budgets=[4, 16])
    assert "up to 16 (2 spaces)" in str(two)
    assert table.performance is not None
    assert two.until[16]["ils"].value == pytest.approx(table.performance.scores("ils").mean())


def test_a_plot_of_several_spaces_has_a_band_each(table: StrategyComparison) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = over_spaces([table, table]).plot()
    assert axes.get_xlabel() == "trials (2 spaces, 5 seeds)"
    assert len(axes.collections) == 3
    short = autosched.simulate(CACHE, ["random", "ils", "genetic"], trials=12, repeats=5)
    axes = over_spaces([table, short], budgets=[4, 16]).plot()
    assert axes.get_xlabel() == "trials (2 spaces, 5 seeds; the shortest runs end here, the longest after 16)"
    assert [t.get_text() for t in axes.texts] == ["4"]


def test_pictures_mark_stated_budgets(table: StrategyComparison) -> None:
    page = comparison_html(table, checkpoints=[4, 9])
    assert page.count('class="mark"') == 2
    assert 'class="mark"' not in comparison_html(table)
    pytest.importorskip("matplotlib").use("Agg")
    axes = table.plot(budgets=[4, 9])
    assert [t.get_text() for t in axes.texts] == ["4", "9"]
    assert not table.plot().texts
