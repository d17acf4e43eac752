"""Today's clock and the learned model on the spaces in benchmarks/recorded: what is asked of them, with some slack.

Everything here is a function of files and seeds. A change of the clock that costs ranks shows here; a change of a space
that the recorded rows no longer fit into wants new recordings (`python -m benchmarks.record`).
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from support.paths import TESTS

from autosched.costmodel.accuracy.metrics import best_at, coverage, kendall, pairwise_accuracy, recall_at
from autosched.costmodel.features import FEATURE_VERSION, Features
from autosched.costmodel.protocol import Prediction, Samples
from autosched.errors import PluginError, UsageError
from autosched.search.evaluate.model_quality import FIGURES, MeanInterval, evaluate, model_quality
from autosched.search.evaluate.recorder import rescored
from autosched.store.replay_file import read_replay
from benchmarks.common import provenance
from benchmarks.cpu import RESULTS
from benchmarks.model_quality import ASKED, line, markdown
from benchmarks.record import FOLDER, HELD_OUT

SMALL = TESTS / "data" / "replay_depthwise.json.gz"
RANKS = dict(zip(ASKED, (0.82, 0.87, 0.90), strict=True)) | {"depthwise_f32_56x56x128": 0.84}
"""Spearman of the clock alone: a little less than when this was written; the last of kernels that LLVM made spill."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", RANKS)
def test_the_clock_ranks_recorded_rows(name: str):
    path = FOLDER / f"{name}.json.gz"
    assert path.stat().st_size < 1_000_000
    recording, lost = rescored(read_replay(path))
    assert len(recording) >= 2000
    assert lost <= 0.02 * len(recording)
    found = model_quality(recording, "analytic", 0)
    assert found.spearman >= RANKS[name]
    assert found.best_8 >= 0.88
    assert math.isnan(found.found)


@pytest.mark.slow
def test_measurements_make_the_model_find_the_optimum():
    recording = read_replay(FOLDER / "conv_f32_28x28x128.json.gz")
    clock, fitted = evaluate(recording, ["analytic", "xgb"], 64, "random", range(3))
    assert fitted.figures["best_1"].mean >= 0.95
    assert fitted.figures["best_8"].mean >= 0.97
    assert fitted.figures["kendall"].mean > clock.figures["kendall"].mean
    assert evaluate(recording, ["xgb"], 64, "random", range(3))[0].figures == fitted.figures
    chance = model_quality(recording, "random", 0)
    assert abs(chance.spearman) < 0.1 < clock.figures["spearman"].mean


class LookUp:
    """Knows by heart the rows that it learnt from, by their features, and guesses one time for all others."""

    version = f"look-up/1 features/{FEATURE_VERSION}"

    def __init__(self, seed: int, threads: int) -> None:
        self.known: dict[bytes, float] = {}

    def fit(self, samples: Samples) -> None:
        rows = zip(samples.features.matrix, samples.time_s, samples.status, strict=True)
        self.known = {row.tobytes(): float(np.log(time_s)) for row, time_s, status in rows if status == "ok"}

    def predict(self, features: Features, analytic_s: np.ndarray) -> Prediction:
        known = [self.known.get(row.tobytes()) for row in features.matrix]
        log_s = np.array([0.0 if k is None else k for k in known])
        return Prediction(log_s, np.ones(len(log_s)), np.ones(len(log_s)))


@pytest.mark.parametrize("chosen", ["random", "auto:analytic"])
def test_what_is_learnt_by_heart_scores_as_chance(chosen: str):
    """With every row that it has not seen alike to it, a table has exactly what chance has; with the leak, more."""
    recording = read_replay(SMALL)
    (found,) = evaluate(recording, [LookUp], 24, chosen, range(4))
    assert (found.model, found.chosen) == ("LookUp", chosen)
    for name in ("pairwise", "best_1", "best_8", "recall"):
        assert found.figures[name].mean == pytest.approx(getattr(found.chance, name)), name
    for name in ("pairwise", "best_1", "best_8"):
        assert getattr(found.leak, name) > getattr(found.chance, name) + 0.05, name
    assert math.isnan(found.figures["spearman"].mean)
    assert found.leak.spearman > 0.2


def test_all_models_learn_from_the_same_rows():
    recording = read_replay(SMALL)
    seen: dict[str, list[bytes]] = {}

    def spy(name: str) -> type[LookUp]:
        class Spy(LookUp):
            def fit(self, samples: Samples) -> None:
                super().fit(samples)
                seen.setdefault(name, []).append(samples.features.matrix.tobytes())

        return Spy

    evaluate(recording, [spy("a"), spy("b")], 16, "auto:analytic", range(3))
    assert seen["a"] == seen["b"]
    assert len(set(seen["a"])) > 1


class Nans(LookUp):
    def predict(self, features: Features, analytic_s: np.ndarray) -> Prediction:
        return Prediction(*[np.full(len(analytic_s), np.nan)] * 3)


def test_what_cannot_be_judged_is_said():
    recording = read_replay(SMALL)
    plan = max(recording.plans, key=len)
    failed = replace(plan, status=np.full(len(plan), 2, np.uint8), time_s=np.full(len(plan), np.nan))
    for changed, said in (
        (failed, "came out right, so there is nothing to rank"),
        (replace(plan, time_s=np.where(plan.ok, 1e-3, np.nan)), "right took 0.001 s, so there is nothing to rank"),
    ):
        with pytest.raises(UsageError, match=said):
            evaluate(replace(recording, plans=(changed,)), ["analytic"], 16)
    with pytest.raises(UsageError, match="no seeds"):
        evaluate(recording, ["analytic"], 16, seeds=range(0))
    with pytest.raises(UsageError, match="leave 10 of"):
        evaluate(recording, ["analytic"], 50)
    with pytest.raises(PluginError, match="log_s of nan for row 0"):
        evaluate(recording, [Nans], 16, "random", [0])
    with pytest.raises(UsageError, match="recorded without one"):
        evaluate(replace(recording, plans=(replace(plan, terms={}),)), ["analytic"], 16, "clock")


def test_one_seed_has_no_interval_of_seeds():
    (found,) = evaluate(read_replay(SMALL), ["random"], 16, "random", [3])
    assert math.isnan(found.figures["best_1"].low)
    assert found.figures["kendall"].low < found.figures["kendall"].mean < found.figures["kendall"].high


def test_a_figure_is_marked_that_is_short_of_what_is_asked():
    (found,) = evaluate(read_replay(SMALL), ["random"], 16, "random", range(5))
    assert set(found.figures) == set(FIGURES)
    assert "(asked: 1.5)" in line(found.figures, {"best_1": 1.5})
    assert "found" not in line({"found": MeanInterval(math.nan, math.nan, math.nan)}, {})


def test_the_page_has_the_figures_that_are_kept():
    kept = json.loads((RESULTS / "model_quality.json").read_text())
    page = (FOLDER.parents[1] / "docs" / "benchmarks.md").read_text()
    assert markdown(kept) in page, "python -m benchmarks.model_quality --markdown"
    assert provenance.said(kept, provenance.MODELS) in page, "the line of --markdown says whether they are stale"
    assert list(kept["spaces"]) == [*ASKED, *HELD_OUT]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ASKED, *HELD_OUT])
def test_figures_that_are_kept_are_todays(name: str):
    """A clock that ranks otherwise now than when the page was written wants `python -m benchmarks.model_quality`."""
    kept = json.loads((RESULTS / "model_quality.json").read_text())["spaces"][name]["clock"]
    recording, _ = rescored(read_replay(FOLDER / f"{name}.json.gz"))
    now = model_quality(recording, "analytic", 0)
    for figure in ("spearman", "kendall", "best_1", "best_8"):
        assert getattr(now, figure) == pytest.approx(kept[figure][0], abs=0.02), f"{figure} is stale"


def test_rows_predicted_alike_are_in_no_order():
    measured = np.array([4.0, 1.0, 2.0, np.inf, 8.0])
    assert best_at(np.zeros(5), measured, 1) == pytest.approx((1 / 4 + 1 + 1 / 2 + 0 + 1 / 8) / 5)
    assert best_at(np.zeros(5), measured, 5) == 1.0
    assert recall_at(np.zeros(5), measured, 2) == pytest.approx(2 / 5)
    assert best_at([0, 1, 1, 1, 1], measured, 2) == pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 4) / 4)
    for none in (best_at, recall_at):
        assert math.isnan(none([1, 2], [np.inf, np.inf], 1))


def test_metrics_of_ranks():
    predicted, measured = [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 8.0]
    assert best_at(predicted, measured, 1) == 0.5
    assert best_at(predicted, measured, 2) == 1.0
    assert recall_at(predicted, measured, 1) == 0.0
    assert recall_at(predicted, measured, 3) == 1.0
    assert recall_at(predicted, measured, 16) == 1.0
    assert pairwise_accuracy(predicted, measured) == pytest.approx((kendall(predicted, measured) + 1) / 2)
    rng = np.random.default_rng(0)
    assert coverage(np.zeros(20_000), np.full(20_000, 0.3), np.exp(rng.normal(0, 0.3, 20_000))) == pytest.approx(
        0.8, abs=0.01
    )
