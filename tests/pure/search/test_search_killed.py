"""A tuning process that is killed: the next one goes on from what was finished."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record
from support.paths import TESTS

from autosched.search import SearchSpace, open_study, run
from autosched.store import SqliteStore

TUNER = """
import sys
from conformance.synthetic import SyntheticDevice, clock, make_plan, record
from autosched.search import SearchSpace, open_study, run
from autosched.search.events import TrialDone
from autosched.store import SqliteStore

def listen(event):
    if isinstance(event, TrialDone):
        print(event.trial.key, flush=True)

space = SearchSpace([make_plan("a")], clock)
study = open_study(record(), space, SqliteStore(sys.argv[1]), strategy_name="auto")
run(study, SyntheticDevice(), 5000, listener=listen)
"""


@pytest.mark.slow
def test_the_next_run_continues_where_a_killed_one_stopped(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    told: list[str] = []
    command = [sys.executable, "-c", TUNER, str(tmp_path / "a.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as tuner:
        assert tuner.stdout is not None
        for line in tuner.stdout:
            told.append(line.strip())
            if len(told) == 20:
                break
        tuner.send_signal(signal.SIGKILL)
    with SqliteStore(tmp_path / "a.db") as store:
        space = SearchSpace([make_plan("a")], clock)
        study = open_study(record(), space, store, strategy_name="auto")
        before = len(study.searched)
        assert [t.key for t in study.searched][:20] == told
        result = run(study, SyntheticDevice(), before + 10)
        assert result.done == before + 10
        assert len({t.key for t in study.searched}) == before + 10
        assert [t.number for t in study.searched] == list(range(1, before + 11))
