"""`--timeout` of the real command, while something hangs for ten minutes: in Python, in native code, in a thread."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli.conftest import SMALL, Cli, Done

from autosched.store import SqliteStore

HANG = """
import ctypes, time
from autosched.cli import entry
from autosched.cli.deadline import Outside
free, held = ctypes.CDLL(None), ctypes.PyDLL(None)
mutex = ctypes.create_string_buffer(64)  # locked twice, it waits for ever, and no signal ends that
watching, enter = [], Outside.__enter__
Outside.__enter__ = lambda self: watching.append(self) or enter(self)
def soon():  # the time is over half a second after the hang begins, however slow the machine is
    deadline = watching[0].deadline
    deadline.end = time.monotonic() + 0.5
    deadline.again()
    enter(watching[0])
def swallowing(*a, **k):
    soon()
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
def native(*a, **k):
    soon()
    free.pthread_mutex_lock(mutex) or free.pthread_mutex_lock(mutex)
def holding(*a, **k):
    soon()
    held.pthread_mutex_lock(mutex) or held.pthread_mutex_lock(mutex)
def asleep(*a, **k):
    soon()
    time.sleep(600)
"""


def hanging(cli: Cli, patch: str, *flags: object) -> Done:
    command = [sys.executable, "-c", HANG + patch + "\nentry.main()", "tune", *SMALL, "--timeout", "500s"]
    ended = subprocess.run(
        [*command, *map(str, flags)], capture_output=True, text=True, timeout=240, check=False, **cli.options()
    )
    return Done(ended.returncode, ended.stdout, ended.stderr)


AFTER_TWO = """
from autosched.search.tuning.study import Study
ask = Study.ask
Study.ask = lambda self, n=1: {how}() if self.trials else ask(self, 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["swallowing", "native"])
def test_what_hangs_in_the_search_is_answered_for(cli: Cli, how: str) -> None:
    done = hanging(cli, AFTER_TWO.format(how=how), "-d", "simulator", "--json", "-s", "random")
    assert done.status == 0, done.err
    assert done.json["best"]["time_s"] > 0
    assert done.json["trials"]["done"] == 2
    with SqliteStore(cli.folder / "studies.db", read_only=True) as store:
        (study,) = store.studies()
        kept = [t.number for t in store.trials(study.name) if t.round == "search"]
    assert kept == [1, 2]


@pytest.mark.slow
def test_native_code_that_lets_no_thread_run_is_ended_too(cli: Cli) -> None:
    done = hanging(cli, AFTER_TWO.format(how="holding"), "-d", "simulator", "-s", "random")
    assert done.status == 1
    with SqliteStore(cli.folder / "studies.db", read_only=True) as store:
        assert len(store.trials(next(iter(store.studies())).name)) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("import autosched.cli.inputs as i; i.target = {how}", "while reading the program"),
        ("import autosched.search.tuning.tune as t; t.planned = {how}", "while matching"),
        (
            "import autosched.search.space.space as s; s.SearchSpace.empty = property({how})",
            "while laying out the spaces",
        ),
        ("from autosched.device.correctness import oracle as c; c.compute = {how}", "while"),
        ("import autosched.search.tuning.tune as t; t.measure_baseline = {how}", ""),
    ],
)
def test_each_phase(cli: Cli, patch: str, said: str) -> None:
    trials = ("-n", "2") if not said else ()
    done = hanging(cli, patch.format(how="asleep"), *trials)
    if said:
        assert (done.status, f"was over before the first trial, {said}" in done.err) == (1, True), done.err
    else:
        assert done.status == 0, done.err
        assert "best" in done.out


def test_less_time_than_the_command_needs_to_start(cli: Cli) -> None:
    done = cli("tune", *SMALL, "--timeout", "100ms", "-n", "100000", status=1)
    assert "over before the first trial" in done.err
