"""A worker that somebody ends while it starts is said to have been ended, not to be broken."""

import os
import signal

import pytest

from autosched.device.processes.process import WorkerProcess
from autosched.errors import MissingError


def test_a_worker_that_is_killed_while_it_starts(tmp_path, monkeypatch):
    (tmp_path / "killed_worker.py").write_text(
        f"import os\ndef main(*_):\n    os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(MissingError, match="killed_worker was ended by SIGKILL while it started"):
        WorkerProcess("killed_worker").ensure()


def test_a_worker_that_fails_says_why(tmp_path, monkeypatch):
    (tmp_path / "broken_worker.py").write_text("raise ValueError('a mistake of ours')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(MissingError, match="broken_worker did not start") as told:
        WorkerProcess("broken_worker").ensure()
    assert "a mistake of ours" in told.value.hint
