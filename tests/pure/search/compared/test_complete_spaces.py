"""Spaces that were recorded whole: small files, all rows, what their table says of the clock, and nothing of where."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor
from support.paths import ROOT

from autosched.search.evaluate.training_rows import RecordedRows
from autosched.store.recorded_space import RecordedSpace
from autosched.store.replay_file import read_replay
from benchmarks.record import COMPLETE, FOLDER, command, file_of

FILES = sorted((FOLDER / "complete").glob("*.json.gz"))
TABLE = (FOLDER / "complete" / "README.md").read_text()


def clock_rank(recording: RecordedSpace) -> float:
    columns = recording.columns
    right = np.isfinite(columns["time_s"])
    return float(spearmanr(columns["clock_s"][right], columns["time_s"][right]).statistic)


def test_each_has_a_command_that_made_it() -> None:
    assert sorted(file_of(name) for name in COMPLETE) == FILES
    for name in COMPLETE:
        assert command(name)[-3:] == ["--all", "-o", str(file_of(name))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_all_rows_are_there_in_a_small_file(path: Path) -> None:
    recording = read_replay(path)
    assert recording.complete
    assert 256 <= len(recording) <= 4096
    assert path.stat().st_size < 1_000_000
    assert all(plan.ok.all() for plan in recording.plans)
    noise = recording.settings["noise"]
    assert noise["again"]["rows"] == 24
    assert noise["again"]["off"][1] < 0.1
    assert re.search(r"/(tmp|home|root|work|usr)/", gzip.decompress(path.read_bytes()).decode()) is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_table_says_how_the_clock_ranks_them(path: Path) -> None:
    recording = read_replay(path)
    cells = next(row for row in TABLE.splitlines() if f"`{path.name.removesuffix('.json.gz')}`" in row).split("|")
    said = [cell.strip() for cell in cells]
    assert said[3] == f"{len(recording):,}"
    assert said[4] == f"{clock_rank(recording):.2f}"
    assert said[5] == f"{recording.settings['noise']['again']['off'][1]:.1%}".replace("%", " %")


def test_three_are_there_where_the_clock_is_poor() -> None:
    ranks = sorted(clock_rank(read_replay(path)) for path in FILES)
    poor, well = ranks[:3], ranks[3:]
    assert poor[-1] < 0.5
    said = f"three of them well ({well[0]:.2f} to {well[-1]:.2f}) and three\npoorly ({poor[0]:.2f} to {poor[-1]:.2f})"
    assert said in (ROOT / "docs" / "replay.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_times_follow_from_what_was_decided(path: Path) -> None:
    """So a poor clock is the clock's doing, and not that of noise."""
    opened = RecordedRows.of(read_replay(path))
    log_s = np.log(opened.times)
    forest = RandomForestRegressor(150, oob_score=True, random_state=0)
    off = log_s - forest.fit(np.nan_to_num(opened.features.matrix), log_s).oob_prediction_
    assert forest.oob_score_ > 0.84
    assert np.mean(np.abs(off) > np.log(1.5)) <= 0.0105
