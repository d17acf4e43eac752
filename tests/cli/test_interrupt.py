"""A run that is interrupted or killed loses no finished trial; the same command continues it."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from typing import Any

import pytest
from cli.conftest import NAME, SMALL, Cli

from autosched.errors import AutoschedError
from autosched.store import SqliteStore

ENDLESS = ("tune", *SMALL, "-s", "random", "-n", "5000")


def _numbers(cli: Cli) -> list[int]:
    with SqliteStore(cli.folder / "studies.db", read_only=True) as store:
        (study,) = store.studies()
        return [t.number for t in store.trials(study.name) if t.round == "search"]


def _interruptible() -> None:
    """Where the tests run in the background of a shell, they and their children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _started(cli: Cli, *flags: str, trials: int = 3) -> subprocess.Popen[str]:
    """A run that has finished some trials."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = cli.command(*ENDLESS, *flags)
    run = subprocess.Popen(command, preexec_fn=_interruptible, **pipes, **cli.options())
    until = time.monotonic() + 90
    while time.monotonic() < until and run.poll() is None:
        try:
            if len(_numbers(cli)) >= trials:
                return run
        except (AutoschedError, ValueError):
            pass  # no store, no study yet
        time.sleep(0.1)
    run.kill()
    raise AssertionError(f"no trials: {run.communicate()}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_same_command_continues(cli: Cli, how: signal.Signals) -> None:
    run = _started(cli, "--fresh")
    run.send_signal(how)
    out, err = run.communicate(timeout=60)
    assert "Traceback" not in err
    done = _numbers(cli)
    assert done == list(range(1, len(done) + 1))
    if how == signal.SIGINT:
        assert run.returncode == 130
        said = re.search(r"stopped after (\d+) trials; nothing is lost\. Continue:  (.*)", err)
        assert said
        assert int(said[1]) == len(done)
        assert shlex.split(said[2]) == ["autosched", *ENDLESS], "and not --fresh, which would start over"
        assert out.startswith("best ")
    total = len(done) + 2
    again = cli.near()("tune", *SMALL, "-s", "random", "-n", total, "--json")
    assert again.json["trials"]["done"] == total
    assert _numbers(cli) == list(range(1, total + 1))
    assert f"continuing: {len(done)} of {total} trials done" in again.err
    assert cli.near()("show", NAME, "--as", "schedule").out.startswith(NAME)
