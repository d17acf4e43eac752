"""Recordings that cannot be evaluated: said plainly by `simulate` and `model eval`, with the place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Cli
from support.paths import TESTS

FILE = TESTS / "data" / "replay_depthwise.json.gz"
CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"


def constant(data: dict[str, Any]) -> None:
    for plan in data["plans"]:
        plan["time_s"] = [None if s is None else 1e-3 for s in plan["time_s"]]


def failed(data: dict[str, Any]) -> None:
    for plan in data["plans"]:
        rows = len(plan["time_s"])
        plan |= {"time_s": [None] * rows, "status": ["crash"] * rows, "messages": {}}


def twice(data: dict[str, Any]) -> None:
    plan = max(data["plans"], key=lambda p: len(p["time_s"]))
    for column in plan["indices"]:
        column[7] = column[3]


def negative(data: dict[str, Any]) -> None:
    data["plans"][0]["time_s"][0] = -1


def schema(data: dict[str, Any]) -> None:
    data["schema"] = "autosched/replay/9"


def none_of_several(data: dict[str, Any]) -> None:
    data |= {"schema": "autosched/replays/1", "recordings": []}


SAID: dict[Callable[[dict[str, Any]], None], str] = {
    constant: "rows of depthwise_conv2d that came out right took 0.001 s, so there is nothing to",
    failed: "no row of depthwise_conv2d came out right, so there is nothing to",
    twice: "rows 3 and 7 of ",
    negative: "has a time of -1 s: rows that are ok have a time above 0",
    schema: "is of schema 'autosched/replay/9'; this version reads 'autosched/replay/1'",
}


@pytest.mark.parametrize("change", SAID, ids=lambda change: change.__name__)
def test_what_is_wrong_is_said(cli: Cli, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(gzip.decompress(FILE.read_bytes()))
    change(data)
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(data))
    for command in (("simulate", file, "-s", "random", "--repeats", 2), ("model", "eval", file, "--measured", 16)):
        done = cli.near()(*command, status=2)
        assert SAID[change] in done.err
        assert done.out == ""


def test_a_file_of_several_that_holds_none(cli: Cli, tmp_path: Path) -> None:
    data = json.loads(gzip.decompress(FILE.read_bytes()))
    none_of_several(data)
    file = tmp_path / "none.json"
    file.write_text(json.dumps(data))
    assert "recordings is missing or empty" in cli.near()("model", "eval", file, status=2).err
    assert "recordings is missing or empty" in cli.near()("simulate", file, status=2).err


def test_a_value_that_cannot_be_right_is_named_with_its_place(cli: Cli, tmp_path: Path) -> None:
    """One for the command; tests/pure/store/test_recording_values.py has a table of them."""
    data = json.loads(gzip.decompress(FILE.read_bytes()))
    data["plans"][0]["indices"][0][2] = 0.5
    file, table = tmp_path / "half.json", tmp_path / "other.csv"
    file.write_text(json.dumps(data))
    said = cli.near()("simulate", file, status=2).err
    assert "plans[0].indices[0][2] is 0.5, and must be a whole number" in said
    assert "help: mend the file there" in said
    table.write_text("a,b\n1,2\n")
    assert "is no table of BAT" in cli.near()("simulate", table, status=2).err


def test_measurements_that_were_replaced_are_counted(cli: Cli, tmp_path: Path) -> None:
    """A configuration that a tuner measured again, as in caches that were added to."""
    data = json.loads(CACHE.read_text())
    first = next(iter(data["cache"]))
    data["cache"]["again"] = {**data["cache"][first], "time": 7.0}
    file = tmp_path / "again.json"
    file.write_text(json.dumps(data))
    said = "left out 1 measurement of configurations that were measured again: the last one counts"
    assert said in cli.near()("simulate", file, "-s", "random", "--repeats", 2, "-n", 4).err
    assert said in cli.near()("model", "eval", file, "-m", "analytic", "--measured", 0, "--seeds", 1).err
    assert "left out" not in cli.near()("simulate", file, "-s", "random", "--repeats", 2, "-n", 4, "-q").err
    assert "left out" not in cli.near()("simulate", CACHE, "-s", "random", "--repeats", 2, "-n", 4).err


def test_models_are_judged_on_spaces_of_others(cli: Cli) -> None:
    """There is no clock: who takes it as it is has chance, and a learned model more."""
    asked = ("model", "eval", CACHE, "-m", "analytic,xgb", "--measured", 32, "--seeds", 3, "--chosen", "random")
    done = cli.near()(*asked)
    assert "recorded without a clock, so analytic is chance" in done.err
    clock, learned = cli.near()(*asked, "--json").json["models"]
    assert clock["spearman"] is None
    assert clock["best_8"]["mean"] == pytest.approx(clock["chance"]["best_8"])
    assert learned["pairwise"]["mean"] > 0.6
    assert "not a recording of ours" in cli.near()(*asked, "--today", status=2).err
