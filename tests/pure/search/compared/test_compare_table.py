"""Statistics of a comparison on rows whose answers are known, and what is shown of them."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosched.errors import MissingError, UnknownNameError, UsageError
from autosched.report import differences, plots, statistics
from autosched.report.comparison import StrategyComparison
from autosched.search.evaluate.compare import Row
from autosched.store.records import Measurement, Trial


def table(times: dict[str, list[list[float | None]]]) -> StrategyComparison:
    """A comparison from times by strategy, seed and trial; None failed."""
    rows = []
    for name, runs in times.items():
        for seed, run in enumerate(runs):
            best: float | None = None
            for number, time_s in enumerate(run, 1):
                best = time_s if best is None else best if time_s is None else min(best, time_s)
                status = "crash" if time_s is None else "ok"
                row = int(1e6 * (time_s or 0))  # a candidate for each time
                rows.append(Row(name, seed, number, "p", row, status, time_s, best, number * 0.1))
    runs = max(len(r) for r in times.values())
    trials = max(len(run) for r in times.values() for run in r)
    return StrategyComparison("gemm", "t", "synthetic", tuple(times), tuple(range(runs)), trials, tuple(rows))


def two() -> StrategyComparison:
    return table({"slow": [[8.0, 4.0, 4.0, 2.0]] * 6, "fast": [[2.0, 1.0, 3.0, 1.0]] * 6})


def three() -> StrategyComparison:
    """Seeds that are replicates: `fast` is ahead of `slow` with each, by other amounts; `still` is always the same."""
    off = np.linspace(0.0, 1.0, 8)
    slow = [[8.0 + x, 4.0 + 2 * x, 2.0 + x**2] for x in off]
    fast = [[2.0 + x / 2, 1.5 - x / 4, 1.0] for x in off]
    return table({"slow": slow, "fast": fast, "still": [[3.0, 3.0, 1.5]] * 8})


def test_summary_of_known_rows() -> None:
    slow, fast = two().summary(checkpoints=[1, 2, 4]).strategies
    assert {n: i.value for n, i in slow.best_s.items()} == {1: 8.0, 2: 4.0, 4: 2.0}
    assert all(np.isnan(i.low) and np.isnan(i.high) for i in fast.best_s.values()), "one run, six times"
    # 1 - 1/best so far, over the four trials.
    assert slow.regret.value == pytest.approx(np.mean([7 / 8, 3 / 4, 3 / 4, 1 / 2]))
    assert fast.regret.value == pytest.approx(np.mean([1 / 2, 0, 0, 0]))


def test_differences_are_paired_and_point_the_right_way() -> None:
    regret, _, final, _ = three().summary().differences
    assert (regret.strategy, regret.baseline, regret.outcome, final.outcome) == ("fast", "slow", "regret", "final")
    assert regret.difference.low < regret.difference.value < regret.difference.high < 0
    assert regret.superiority == final.superiority == 1.0
    assert regret.p is not None
    assert regret.p < 0.05
    back = three().summary(baseline="fast").differences[0]
    assert (back.strategy, back.superiority) == ("slow", 0.0)
    assert back.difference.value == pytest.approx(-regret.difference.value)


def test_one_outcome_is_tested_and_its_family_named() -> None:
    found = three().summary()
    assert {d.outcome: d.p is not None for d in found.differences if d.strategy == "fast"} == {
        "regret": True, "final": False
    }  # fmt: skip
    assert "the mean difference of regret over 8 seeds, paired" in found.family
    assert "the family of 1 test against slow" in found.family
    assert found.family.startswith("p: bootstrap t test of")


def test_strategies_without_variance_are_marked_and_not_tested() -> None:
    """Eight seeds of one run are one run; that holds where it is the baseline, too."""
    found = three()
    slow, _, still = found.summary().strategies
    assert (slow.distinct, still.distinct) == (8, 1)
    _, d, *_ = found.summary().differences
    assert (d.strategy, d.p, d.untested) == ("still", None, "still made the same run with every seed")
    text = str(found)
    assert "still =" in text
    assert "= made the same run with every seed: its seeds are no replicates" in text
    assert "not tested: still made the same run with every seed" in text
    against = found.summary(baseline="still")
    assert all(d.p is None for d in against.differences)
    assert against.family == ""


def test_near_deterministic_strategies_are_marked() -> None:
    runs = [[1.0, 2.0]] * 5 + [[1.0, 3.0]]
    found = table({"a": runs, "b": [[2.0 + x, 2.0] for x in range(6)]})
    assert "different runs of 6 seeds: a: 2" in str(found)


def test_pairing_matters() -> None:
    """Seeds differ far more than strategies do; by pairs the small difference is certain."""
    base = [[10.0 + s] for s in range(8)]
    found = table({"a": base, "b": [[t * 0.99] for (t,) in base]}).summary().differences[0]
    assert found.superiority == 1.0
    assert found.difference.high < 0


def test_runs_without_a_result_are_the_worst() -> None:
    found = table({"a": [[None, 2.0], [None, None]], "b": [[1.0, 1.0], [None, 1.0]]})
    a, b = found.summary(checkpoints=[1, 2]).strategies
    assert a.best_s[1].value == a.best_s[2].value == np.inf
    assert a.regret.value == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert b.best_s[2].value == 1.0
    assert a.failed == 0.75
    assert b.failed == 0.25
    assert "nan" not in str(found)


def test_nothing_found_at_all() -> None:
    found = table({"a": [[None]], "b": [[None]]})
    assert found.best_s is None
    assert {d.superiority for d in found.summary().differences} == {0.5}
    assert "nan" not in str(found)


def test_one_strategy_has_no_differences() -> None:
    assert table({"a": [[1.0]]}).summary().differences == ()


def test_the_text() -> None:
    text = str(two())
    assert "gemm for t on synthetic: 2 strategies × 6 seeds × 4 trials" in text
    assert "fast =    1.00 s     12.5%   0%" in text
    assert "fast - slow: final -50.0%, better in 100% of pairs" in text
    assert re.search(r"fast - slow: regret -\d.*% \[-.*%, -.*%\], better in 100% of pairs, p < 0.001", str(three()))


def test_few_seeds_are_pointed_out() -> None:
    few = table({"a": [[1.0 + s] for s in range(4)], "b": [[2.0 + s * s] for s in range(4)]})
    assert "fewer than 5 seeds: intervals and tests take differences to be normally distributed" in str(few)
    assert "p: Student's t test of the mean difference" in str(few)
    assert "fewer than" not in str(three())
    one = table({"a": [[1.0]], "b": [[2.0]]})
    assert "2 strategies × 1 seed × 1 trial" in str(one)
    assert "one seed has no intervals, and nothing is tested" in str(one)
    assert one.summary().differences[0].untested == "one seed"


def test_what_would_decide_is_said() -> None:
    rng = np.random.default_rng(3)
    a, b = ([[float(x)] for x in 3 + rng.normal(size=12)] for _ in range(2))
    found = table({"a": a, "b": b}).summary()
    assert re.fullmatch(
        r"12 seeds see differences from [\d.]+ on; (some [\d,]+ more seeds would decide this one|of so small .*)",
        found.differences[0].more,
    )
    assert str(found).endswith(f"undecided: b - a: {found.differences[0].more}")
    assert three().summary().differences[0].more == ""


@pytest.mark.parametrize("checkpoint", [0, 5, -1])
def test_checkpoints_out_of_range(checkpoint: int) -> None:
    with pytest.raises(UsageError, match=f"checkpoint {checkpoint}"):
        two().summary(checkpoints=[checkpoint])


def test_a_baseline_that_did_not_take_part() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'slow'"):
        two().summary(baseline="slo")


@pytest.mark.slow
def test_the_frame_is_tidy() -> None:
    pytest.importorskip("pandas")
    found = two()
    assert list(found.frame.columns) == list(Row._fields)
    assert [tuple(r) for r in found.frame.itertuples(index=False)] == list(found.rows)
    assert found.frame.groupby("strategy").time_s.min().to_dict() == {"fast": 1.0, "slow": 2.0}


@pytest.mark.parametrize(("module", "use"), [("pandas", "frame"), ("matplotlib.pyplot", "plot")])
def test_without_the_extra(module: str, use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingError, match=module.split(".")[0]) as caught:
        two().frame if use == "frame" else two().plot()
    assert "autosched[plots]" in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=3), min_size=1, max_size=12))
def test_intervals_hold_their_estimate(curves: list[list[float]]) -> None:
    value, low, high = statistics.median_curve(curves)
    table = np.array(curves)
    assert np.all((low <= value) & (value <= high) & (low >= table.min(axis=0)) & (high <= table.max(axis=0)))
    assert np.allclose(value, np.median(table, axis=0))
    value, low, high = statistics.mean_curve(curves, np.random.default_rng(0))
    alike = np.isnan(low)
    assert np.all(alike | ((low <= value) & (value <= high)))
    assert np.all(np.ptp(table[:, alike], axis=0) <= 1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=12), st.integers(1, 3))
def test_an_interval_and_its_p_value_say_the_same(values: list[float], spaces: int) -> None:
    found = statistics.estimate([np.roll(values, s) * (s + 1) for s in range(spaces)], np.random.default_rng(0))
    if np.isnan(found.p):
        assert np.isnan(found.low)
    else:
        assert (found.p <= 0.05) == (found.low > 0 or found.high < 0)
        assert found.units == ("seeds" if spaces == 1 else "spaces")


def test_intervals_are_wider_than_students_where_seeds_have_a_long_tail() -> None:
    found = statistics.estimate([np.array([0.0, 0.1, 0.0, 0.2, 0.1, 0.1, 0.0, 3.0])], np.random.default_rng(0))
    assert found.widening > 1.2
    even = statistics.estimate([np.linspace(-1, 1, 30)], np.random.default_rng(0))
    assert 1.0 <= even.widening < 1.1


def test_what_spaces_differ_by_is_part_of_an_interval() -> None:
    """Seeds tell each space's mean well, and no more seeds tell what other spaces have."""
    rng = np.random.default_rng(1)
    spaces = [rng.normal(mean, 0.1, 50) for mean in (-1, 0, 1, 2, 3, 4)]
    found = statistics.estimate(spaces, rng)
    assert found.low < 0 < found.high
    assert found.high - found.low > 10 * (statistics.estimate([np.mean(spaces, axis=0)], rng).high - found.value)
    assert differences.more_of(found, 1).endswith("and more seeds alone would not")
    noisy = [mean + 3 * np.linspace(-1, 1, 8) for mean in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert re.search(r"or \d+ seeds in place of 8$", differences.more_of(statistics.estimate(noisy, rng), 1))


def test_how_many_are_needed() -> None:
    assert statistics.needed(1.0, 1.0) == 10
    assert statistics.visible(1.0, 10) <= 1.0 < statistics.visible(1.0, 9)
    assert statistics.needed(1.0, 0.0) is None
    assert statistics.needed(1.0, 1e-4) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=10))
def test_superiority_is_symmetric(pairs: list[tuple[int, int]]) -> None:
    a, b = zip(*pairs, strict=True)
    assert statistics.superiority(a, b) == pytest.approx(1 - statistics.superiority(b, a))


def test_holm_is_monotone_and_never_below_the_raw_value() -> None:
    raw = [0.001, 0.9, 0.02, 0.02]
    corrected = statistics.holm(raw)
    assert corrected == pytest.approx([0.004, 0.9, 0.06, 0.06])
    assert statistics.holm([]) == []


@pytest.mark.slow
class TestPlots:
    def setup_method(self) -> None:
        pytest.importorskip("matplotlib").use("Agg")

    def trials(self) -> list[Trial]:
        times = [3e-6, None, 2e-6, 4e-6, None]
        found = [Measurement("ok", t) if t else Measurement("crash") for t in times]
        return [Trial(n, "p", n, {}, m, 2.5e-6, 2e-6 if n > 2 else None) for n, m in enumerate(found, 1)]

    @pytest.mark.slow
    def test_comparison_draws_medians_and_intervals(self) -> None:
        axes = two().plot()
        lines = {line.get_label(): line.get_ydata().tolist() for line in axes.lines}
        assert lines == {"slow": [8.0, 4.0, 4.0, 2.0], "fast": [2.0, 1.0, 1.0, 1.0]}
        assert len(axes.collections) == 2
        assert "(s)" in axes.get_ylabel()

    def test_comparison_leaves_out_what_was_not_found(self) -> None:
        axes = table({"a": [[None, 2.0]], "b": [[None, None]]}).plot()
        shown = [line.get_ydata().tolist() for line in axes.lines]
        assert np.isnan(shown[0][0])
        assert shown[0][1] == 2.0
        assert np.isnan(shown[1]).all()

    def test_history(self) -> None:
        axes = plots.history(self.trials())
        lines = {line.get_label(): line for line in axes.lines}
        assert lines["best so far"].get_ydata() == pytest.approx([3, 3, 2, 2, 2])
        assert list(lines["crash"].get_xdata()) == [2, 5]
        assert "µs" in axes.get_ylabel()

    def test_predicted(self) -> None:
        lines = {line.get_label(): line for line in plots.predicted(self.trials()).lines}
        assert lines["clock"].get_ydata() == pytest.approx([2.5] * 3)
        assert lines["learned model"].get_ydata()[1:] == pytest.approx([2, 2])

    def test_given_axes_are_used_and_nothing_is_no_error(self) -> None:
        from matplotlib.figure import Figure

        given = Figure().add_subplot()
        assert plots.history([], given) is plots.predicted([], given) is plots.comparison({}, given) is given
        assert plots.history(self.trials()[1:2]) is not given


def test_pairs_that_all_tie_are_the_same() -> None:
    """Two that are apart by as much in turn are not the same; of some ties their share is told."""

    def told(*mine: float, base: tuple[float, ...] = (0.25, 0.25, 0.25, 0.25)) -> str:
        values = {"b": [np.array(base)], "a": [np.array(mine)]}
        return str(differences.differences(values, "b", "final", 0, tested=False)[0])

    assert told(0.25, 0.25, 0.25, 0.25) == "a - b: final +0.0%, the same in all pairs"
    assert told(0.25, base=(0.25,)).endswith("the same in all pairs")
    assert told(0.0, 0.5, 0.0, 0.5).endswith("better in 50% of pairs")
    assert told(0.0, 0.25, 0.5, 0.25).endswith("better in 25% of pairs, the same in 50%")
    assert told(0.0, 1.0, 0.0, 1.0, base=(1.0, 0.0, 1.0, 0.0)).startswith("a - b: final +0.0% [-100.0%, +100.0%]")


def test_a_difference_does_not_hang_on_which_others_are_asked_about() -> None:
    rng = np.random.default_rng(3)
    values = {name: [rng.normal(at, 1.0, 8)] for at, name in enumerate(("base", "one", "two", "three"))}
    every = {d.strategy: d for d in differences.differences(values, "base", "performance", 0, tested=False)}
    for name in ("one", "two", "three"):
        two = {n: values[n] for n in (name, "base")}
        (alone,) = differences.differences(two, "base", "performance", 0, tested=False)
        assert alone == every[name]
