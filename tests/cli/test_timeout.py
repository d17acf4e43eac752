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


def hanging(cli: Cli, patch: str, *flags: object, what: str = "tune") -> Done:
    command = [sys.executable, "-c", HANG + patch + "\nentry.main()", what, *SMALL, "--timeout", "500s"]
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


FIFTH = """
from autosched.search.tuning.measuring import Measuring
measured, rows = Measuring.measured, []
Measuring.measured = lambda self, *a: {how}() if rows.append(1) or len(rows) > 4 else measured(self, *a)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "status"), [("asleep", 0), ("swallowing", 1), ("native", 1), ("holding", 1)])
def test_a_recording_keeps_the_rows_before_what_hangs(cli: Cli, how: str, status: int) -> None:
    words = ("-d", "simulator", "--rows", 40, "-o", "found.json.gz")
    done = hanging(cli, FIFTH.format(how=how), *words, what="record")
    assert done.status == status, done.err
    if how in ("swallowing", "native"):
        assert "4 rows of this run are in found.json.gz.part. Continue:  autosched record" in done.err
    found = cli.near()("record", *SMALL, "--timeout", "500s", *words, "--json")
    assert "there are 4 of 40 rows already" in found.err
    assert found.json["measured"] == 36


def test_less_time_than_the_command_needs_to_start(cli: Cli) -> None:
    done = cli("tune", *SMALL, "--timeout", "100ms", "-n", "100000", status=1)
    assert "over before the first trial" in done.err
