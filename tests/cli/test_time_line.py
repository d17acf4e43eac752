"""The line `time` of `tune` accounts for all of the command's wall time."""

from __future__ import annotations

import re

import pytest
from cli.conftest import SMALL, Cli

from autosched.cli.answers.tune_report import time_lines

SPENT = {"total": 10.0, "match": 4.0, "search": 5.0, "other": 1.0, "model": 0.01}


def test_what_comes_before_and_behind_is_counted() -> None:
    (said,) = time_lines(SPENT, started=109.0, began=100.0, now=121.0)
    assert said == "start 9.0 s · match 4.0 s · search 5.0 s · other 1.0 s · answer 2.0 s · in all 21.0 s"


def test_a_run_without_a_command_has_its_phases() -> None:
    assert time_lines(SPENT, 109.0, None, 121.0) == ["match 4.0 s · search 5.0 s · other 1.0 s"]
    assert time_lines(dict.fromkeys(SPENT, 0.0), 109.0, None, 121.0) == []


@pytest.mark.slow
def test_the_parts_of_a_run_add_up(cli: Cli) -> None:
    done = cli.near()("tune", *SMALL, "-n", 2).out
    line = next(line for line in done.splitlines() if line.startswith("time "))
    *parts, whole = (float(s) for s in re.findall(r"([\d.]+) s", line))
    assert "start " in line
    assert sum(parts) == pytest.approx(whole, abs=0.1 * len(parts))
