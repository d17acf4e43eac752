"""Where there is no terminal, a run says what takes long, and how long trials will take by their own pace."""

from __future__ import annotations

import re
import time

import pytest

import autosched
from autosched import api
from autosched.cli.patience import Patience
from autosched.cli.progress import Progress
from autosched.search.events import Event, FinalFailed, Proposed, StudyOpened, TrialDone
from autosched.search.request import TuneRequest
from autosched.store.records import Measurement, Trial

REQUEST = TuneRequest(autosched.workload("matmul", m=8, n=8, k=8), api.target("x86-avx512"))


def trial(number: int, elapsed_s: float) -> TrialDone:
    return TrialDone(Trial(number, "p", 0, {}, Measurement("ok", 1e-3)), 1e-3, number, 16, {}, elapsed_s)


@pytest.mark.parametrize(
    ("heard", "doing"),
    [((), "scoring the space by the clock, for the first candidates"), ((Proposed(3),), "measuring 3 candidates")],
)
def test_a_silent_search_says_what_it_does(
    heard: tuple[Event, ...], doing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(REQUEST, quiet=False, verbose=False, plain_every_s=0.05) as told:
        for event in (StudyOpened("s", 0, 16, None, True, 0), *heard):
            told(event)
        capsys.readouterr()
        said, until = "", time.monotonic() + 20
        while "so far" not in said and time.monotonic() < until:
            time.sleep(0.02)
            said += capsys.readouterr().err
    assert re.search(rf"^\.\.\.    {doing} \(\d+ s so far\)$", said, re.MULTILINE)


def test_other_commands_say_what_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    with Patience("matching 12 instructions", every_s=0.05) as told:
        said, until = "", time.monotonic() + 20
        while "writing" not in said and time.monotonic() < until:
            time.sleep(0.02)
            said += capsys.readouterr().err
            told.doing = "writing the answer" if "matching" in said else told.doing
    first, *_, last = said.splitlines()
    assert re.fullmatch(r"\.\.\.    matching 12 instructions \(\d+ s so far\)", first)
    assert "writing the answer" in last
    with Patience("matching", quiet=True, every_s=0.01):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_final_round_that_fails_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Progress(REQUEST, quiet=False, verbose=False)
    told(FinalFailed({"wrong": 2}, 5))
    told(FinalFailed({"wrong": 1}, 1))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "final  2 of 5 candidates did not come out right again (wrong 2), and cannot be the best"
    assert second == "final  1 of 1 candidate did not come out right again (wrong 1), and cannot be the best"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(REQUEST, quiet=True, verbose=False, plain_every_s=0.01):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_time_left_is_of_trials_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Scoring took 160 s before the first of 16 trials, of half a second each: that is no 2,400 s for the others."""
    told = Progress(REQUEST, quiet=False, verbose=False)
    told(trial(1, 160.0))
    told(trial(2, 200.0))
    first, second = (line for line in capsys.readouterr().err.splitlines() if "trials" in line)
    assert "left" not in first
    assert second.endswith("~560 s left")
