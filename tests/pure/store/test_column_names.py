"""Recordings and comparisons as columns, one for each decision."""

from __future__ import annotations

import numpy as np
import pytest
from support.paths import TESTS

import autosched
from autosched.search.evaluate.compare import Row
from autosched.store.columns import PlanPart, decision_columns
from autosched.store.recorded_space import RecordedPlan, RecordedSpace
from autosched.store.records import STATUSES
from autosched.store.replay_file import read_replay
from autosched.tiling.step import Decision

RECORDED = read_replay(TESTS / "data" / "replay_depthwise.json.gz")
CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"


def plan(name: str, decisions: tuple[Decision, ...], indices: list[list[int]], **more: object) -> RecordedPlan:
    rows = len(indices)
    times = np.array([1e-3 * (n + 1) for n in range(rows)])
    nothing = np.full(rows, np.nan)
    status, places = np.zeros(rows, np.uint8), np.array(indices, np.int32)
    return RecordedPlan(name, decisions, places, status, times, nothing, nothing, **more)  # type: ignore[arg-type]


TWO = RecordedSpace(
    "two",
    (
        plan("p", (Decision("tile", (1, 4)), Decision("order", (0, 1), ("mn", "nm"))), [[1, 0], [0, 1]]),
        plan("q", (Decision("tile", (2, 8)), Decision("status", (5, 6))), [[1, 1]], repeats=np.array([7], np.int32)),
    ),
)


def test_each_decision_is_a_column_whichever_plan_has_it() -> None:
    found = TWO.columns
    assert found["plan"].tolist() == ["p", "p", "q"]
    assert found["tile"].tolist() == [4, 1, 8]
    assert found["tile"].dtype == np.int64
    assert found["order"].tolist() == ["mn", "nm", None]
    assert found["status"].tolist() == ["ok"] * 3
    assert np.isnan(found["decision status"][:2]).all(), "a name that is taken"
    assert found["decision status"][2] == 6
    assert found["repeats"].tolist() == [0, 0, 7]
    assert np.isnan(found["clock_s"]).all()
    assert {len(c) for c in found.values()} == {3}


def test_columns_of_a_real_recording_say_what_rows_are() -> None:
    found = RECORDED.columns
    assert len(found["time_s"]) == len(RECORDED) == 60
    top = 0
    for recorded in RECORDED.plans:
        for place in range(len(recorded)):
            row = zip(recorded.decisions, recorded.indices[place], strict=True)
            assert {d.name: found[d.name][top + place] for d in recorded.decisions} == {
                d.name: d.label(d.domain[i]) for d, i in row
            }
        assert (found["clock_s"][top : top + len(recorded)] == recorded.terms["total"]).all()
        top += len(recorded)
    assert np.nanmin(found["time_s"]) == RECORDED.best_s
    assert set(found["status"]) <= set(STATUSES)


def test_a_frame_has_the_same_columns() -> None:
    pytest.importorskip("pandas")
    frame = TWO.frame
    assert list(frame.columns) == list(TWO.columns)
    assert frame.groupby("plan").time_s.max().to_dict() == {"p": 2e-3, "q": 1e-3}
    assert frame["tile"].tolist() == [4, 1, 8]


@pytest.mark.parametrize("file", [TWO, CACHE])
def test_a_comparison_has_a_column_for_each_decision(file: object) -> None:
    table = autosched.simulate(file, ["random", "ils"], trials=3, repeats=2)  # type: ignore[arg-type]
    columns = table.decisions
    assert {len(c) for c in columns.values()} == {len(table.rows)}
    if isinstance(file, RecordedSpace):
        recorded = file.columns
        three = (recorded[name] for name in ("plan", "tile", "time_s"))
        known = {(plan, tile): time_s for plan, tile, time_s in zip(*three, strict=True)}
        for row, tile in zip(table.rows, columns["tile"], strict=True):
            assert row.time_s == known[row.plan, tile]
    pytest.importorskip("pandas")
    assert list(table.frame.columns) == [*Row._fields, *columns]


def test_a_live_comparison_has_them_too() -> None:
    text = "def f(X: f32[n], Y: f32[n], *, n=64):\n    for i in range(n):\n        Y[i] = X[i] * 2.0\n"
    program = autosched.parse(text)
    table = autosched.compare(program, ["random"], trials=2, seeds=1, target="portable")
    assert set(table.decisions["vector"]) <= {1, 2, 4, 8, 16, 32}


def test_rows_of_no_plan_have_no_columns() -> None:
    assert decision_columns(2, []) == {}
    empty = PlanPart((Decision("a", (1, 2)),), np.zeros((0, 1), int), np.zeros(0, int))
    assert np.isnan(decision_columns(2, [empty])["a"]).all()
