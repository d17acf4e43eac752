"""A run with a deadline ends, whatever hangs: each phase and each plug-in hangs here, on purpose, for ten minutes."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conformance.synthetic import SyntheticDevice, record
from support.studies import SPACE

from autosched.device.protocol import Build
from autosched.device.simulator.device import SimulatorDevice
from autosched.device.simulator.verify import verify
from autosched.errors import NoScheduleError, UsageError
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.search import Result, Stopwatch, Study, open_study, run
from autosched.search.defer_signals import defer_signals
from autosched.search.request import TuneRequest
from autosched.search.space.space import SearchSpace
from autosched.search.tuning import tune as tuning_of
from autosched.search.tuning.baseline import measure_baseline
from autosched.search.tuning.deadline import Deadline, briefly
from autosched.search.tuning.tune import prepare, tune
from autosched.store import Measurement, SqliteStore
from autosched.tiling.candidate import Candidate

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms here")
LONG_S = 600.0


@pytest.fixture(autouse=True)
def alarms_are_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def hang(deadline: Deadline) -> Any:
    """Hang, with the time over soon: not before, however slow the machine is."""
    deadline.end = time.monotonic() + 0.1
    deadline.again()
    time.sleep(LONG_S)


def swallow(deadline: Deadline) -> Any:
    """A plug-in that takes the first alarms for its own failures."""
    deadline.end = time.monotonic() + 0.1
    deadline.again()
    for _attempt in range(2):
        with contextlib.suppress(BaseException):
            time.sleep(LONG_S)


Hang = Callable[[Deadline], Any]


class Hanging(SyntheticDevice):
    """Hangs in a method, from its `after`th call on."""

    def __init__(self, deadline: Deadline, method: str = "", after: int = 0, how: Hang = hang) -> None:
        super().__init__()
        self._deadline, self._method, self._calls, self._after, self._how = deadline, method, 0, after, how

    def _at(self, method: str) -> None:
        self._calls += method == self._method
        if method == self._method and self._calls > self._after:
            self._how(self._deadline)

    def build(self, candidate: Candidate) -> Build:
        self._at("build")
        return super().build(candidate)

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        self._at("final" if repeats == "final" else "measure")
        return super().measure(build, repeats)


def tuned(device: Hanging, store: Any = None, **options: Any) -> tuple[Result, Study]:
    study = open_study(record(), SPACE, store, strategy_name="random", watch=Stopwatch(device.clock))
    for name, how in options.items():
        setattr(study._strategy, name, how)
    with device._deadline as deadline:
        return run(study, device, 12, deadline=deadline), study


@pytest.mark.parametrize("how", [hang, swallow])
@pytest.mark.parametrize("method", ["build", "measure", "final"])
def test_a_device_that_hangs_costs_what_it_had_not_done(method: str, how: Hang, tmp_path: Path) -> None:
    with SqliteStore(str(tmp_path / "s.db")) as store:
        device = Hanging(Deadline(LONG_S), method, 5 if method != "final" else 0, how)
        result, study = tuned(device, store)
        assert result.reason == "timeout"
        assert result.best is not None
        assert result.done == (12 if method == "final" else 5 if how is hang else 6)
        kept = store.trials(study.name)
    assert [t.number for t in kept if t.round == "search"] == list(range(1, result.done + 1))
    if method != "final":
        assert result.best.time_s == min(t.measurement.time_s or 9 for t in kept)


def test_a_strategy_that_hangs_costs_nothing() -> None:
    deadline = Deadline(LONG_S)
    with pytest.raises(NoScheduleError, match="was over before the first trial"):
        tuned(Hanging(deadline), propose=lambda n: hang(deadline))
    deadline = Deadline(LONG_S)
    result, _ = tuned(Hanging(deadline), observe=lambda trials: hang(deadline))  # it learns after a trial is kept
    assert (result.reason, result.done) == ("timeout", 1)


def test_nothing_measured_is_an_error_with_the_phase() -> None:
    with pytest.raises(NoScheduleError, match="before the first trial, while"):
        tuned(Hanging(Deadline(LONG_S), "measure"))


GEMV = "def gemv(A: f32[m, k], B: f32[k], C: f32[m], *, m=4, k=4):\n    for i in range(m):\n        C[i] = 0\n"
GEMV += "        for p in range(k):\n            C[i] += A[i, p] * B[p]\n"


def request(trials: int = 4) -> TuneRequest:
    return TuneRequest(parse(GEMV), load_target("portable"), device="simulator", trials=trials)


def test_a_thread_that_answers_for_a_stuck_run_works_out_no_bound() -> None:
    tuning = prepare(request())
    with contextlib.closing(tuning.device), ThreadPoolExecutor(1) as pool:
        over = replace(tuning, deadline=Deadline(1e-9))
        assert pool.submit(lambda: over.lower_bound_s).result() is None
        assert replace(tuning, deadline=Deadline(LONG_S)).lower_bound_s is not None


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (tuning_of, "planned", "while matching"),
        (tuning_of, "space_of", "laying out"),
        (SearchSpace, "near", "choosing the first candidate"),
        (verify, "compute", "expected outputs"),
    ],
)
def test_before_the_first_trial(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, said: str) -> None:
    deadline = Deadline(LONG_S)
    monkeypatch.setattr(owner, name, lambda *_, **__: hang(deadline))
    with pytest.raises(NoScheduleError, match=said) as told, deadline:
        tune(request(), deadline=deadline)
    assert told.value.hint == f"pass --timeout {4 * LONG_S:g}s, or smaller sizes"


def test_what_the_first_proposals_do_not_wait_for_costs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Deadline(LONG_S)
    never = iter(lambda: hang(deadline), 0)
    monkeypatch.setattr("autosched.search.space.space.SearchSpace.prepared", lambda space: never)
    with deadline:
        _, result = tune(request(), deadline=deadline)
    assert (result.reason, result.done) == ("timeout", 1)


@pytest.mark.parametrize(
    ("owner", "name"), [(tuning_of, "measure_baseline"), (SimulatorDevice, "close")]
)
def test_after_the_last_trial_the_result_stands(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
    with Deadline(LONG_S) as deadline:
        monkeypatch.setattr(owner, name, lambda *_: time.sleep(LONG_S) if name == "close" else hang(deadline))
        tuning, result = tune(request(), deadline=deadline)
    assert result.best is not None
    assert result.done == 4
    assert tuning.baseline is None or name == "close"


def test_a_baseline_is_built_for_no_longer_than_a_candidate() -> None:
    class Slow(SyntheticDevice):
        def build(self, candidate: Candidate) -> Build:
            time.sleep(LONG_S)
            return super().build(candidate)

    assert measure_baseline(parse(GEMV), load_target("portable"), Slow(), 0.2, build_s=0.1) is None


def test_the_lower_bound_takes_no_longer_than_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with Deadline(LONG_S) as deadline:
        tuning, _ = tune(request(2), deadline=deadline)
    deadline.end = time.monotonic()
    monkeypatch.setattr("autosched.search.space.space.SearchSpace._bound_of", lambda *_: time.sleep(LONG_S))
    assert tuning.lower_bound_s is None


def test_a_deadline_without_seconds_never_comes() -> None:
    with Deadline(None) as deadline:
        assert (deadline.left_s, deadline.over) == (None, False)
    with pytest.raises(UsageError):
        Deadline(0.0)


def test_one_deadline_in_another_leaves_the_outer_one_in_force() -> None:
    def work() -> None:
        with briefly(0.1):
            time.sleep(LONG_S)
        with Deadline(LONG_S):
            pass
        with briefly(LONG_S):
            time.sleep(LONG_S)

    with pytest.raises(NoScheduleError, match=r"0\.4 s"), Deadline(0.4):
        work()


def test_what_is_unbroken_is_done_whole() -> None:
    done = []

    def work() -> None:
        with Deadline(0.05):
            with defer_signals():
                time.sleep(0.2)
                done.append("whole")
            done.append("more")

    with pytest.raises(NoScheduleError):
        work()
    assert done == ["whole"]


def test_off_the_main_thread_there_is_no_alarm() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: Deadline(LONG_S).__enter__()._armed).result() is False


def endless() -> int:
    while True:
        time.sleep(0.01)


def test_work_that_takes_too_long_answers_nothing() -> None:
    assert Deadline(None).within(0.05, endless) is None


@pytest.mark.parametrize("ago", [0.0, 10.0])
def test_work_past_the_end_of_the_run_answers_nothing(ago: float) -> None:
    assert Deadline(0.05, began=time.monotonic() - ago).within(10.0, endless) is None


def test_work_that_ends_in_time_answers() -> None:
    assert Deadline(None).within(10.0, lambda: 3) == 3
    assert Deadline(60.0).within(10.0, lambda: 3) == 3


def test_what_work_raises_is_raised() -> None:
    def wrong() -> int:
        raise ValueError("no such form")

    with pytest.raises(ValueError, match="no such form"):
        Deadline(None).within(10.0, wrong)


def test_an_end_within_a_parser_is_an_end() -> None:
    """CPython 3.11 answers an alarm in the middle of `ast.parse` with a SystemError of its own."""
    limit, over, other = Deadline(0.2), SystemError("AST constructor recursion depth mismatch"), SystemError("another")
    with pytest.raises(NoScheduleError, match="was over before the first trial"):
        _ends_with(limit, over)
    with pytest.raises(SystemError, match="another"):
        _ends_with(Deadline(60.0), other, waits=False)


def _ends_with(limit: Deadline, error: Exception, waits: bool = True) -> None:
    with limit:
        while waits and not limit.over:
            with contextlib.suppress(BaseException):
                time.sleep(0.01)
        raise error
