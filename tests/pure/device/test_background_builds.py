"""Builds beside measuring: in order, a few ahead of their turn, let go when nobody asks any more."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest
from conformance.synthetic import make_plan

from autosched.device.cpu.builder import Builder
from autosched.device.processes.background_build import AHEAD, BackgroundBuilds
from autosched.device.processes.process import WorkerDiedError, WorkerProcess
from autosched.device.protocol import Build, Draft
from autosched.tiling.candidate import Candidate

PLAN = make_plan("a")


class Drafted:
    """Notes that it is built; waits for `gate` first, or fails."""

    def __init__(self, row: int, built: list[int], gate: threading.Event | None = None, error: str = "") -> None:
        self.row, self.built, self.gate, self.error = row, built, gate, error

    def ahead(self) -> None:
        self.built.append(-self.row)

    def __call__(self) -> Build:
        self.built.append(self.row)
        assert self.gate is None or self.gate.wait(20)
        if self.error:
            raise ValueError(self.error)
        return Build(Candidate(PLAN, self.row))


@pytest.fixture
def beside() -> Iterator[BackgroundBuilds]:
    found = BackgroundBuilds()
    yield found
    found.close()


def settles(built: list[int], expected: list[int]) -> bool:
    """Whether `built` comes to this, and stays so for a moment."""
    until = time.monotonic() + 20
    while len(built) < len(expected) and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(0.03)
    return built == expected


def row_of(draft: Draft) -> int:
    return draft().candidate.row


def test_a_few_builds_are_made_before_their_turn(beside: BackgroundBuilds) -> None:
    built: list[int] = []
    drafts = [beside.add(Drafted(row, built)) for row in range(1, 8)]
    assert settles(built, list(range(1, AHEAD + 1)))
    assert row_of(drafts[0]) == 1
    assert settles(built, list(range(1, AHEAD + 2)))
    assert [row_of(draft) for draft in drafts[1:]] == [2, 3, 4, 5, 6, 7]
    drafts[0].ahead()
    assert built == [*range(1, 8), -1]


def test_a_build_that_nobody_takes_holds_nobody_up(beside: BackgroundBuilds) -> None:
    built: list[int] = []
    drafts = [beside.add(Drafted(row, built)) for row in range(AHEAD + 3)]
    assert row_of(drafts[-1]) == AHEAD + 2


def test_a_mistake_is_told_to_who_takes_it(beside: BackgroundBuilds) -> None:
    built: list[int] = []
    broken, fine = beside.add(Drafted(1, built, error="a mistake")), beside.add(Drafted(2, built))
    with pytest.raises(ValueError, match="a mistake"):
        broken()
    assert row_of(fine) == 2


def test_a_process_that_dies_while_it_loads_is_not_waited_for() -> None:
    class Dying(WorkerProcess):
        def ensure(self) -> bool:
            raise WorkerDiedError(-signal.SIGSEGV, "start", "")

    builder = Builder()
    builder.process = Dying()
    assert builder.ready()


def test_what_has_not_begun_is_let_go(beside: BackgroundBuilds) -> None:
    built, gate = list[int](), threading.Event()
    drafts = [beside.add(Drafted(row, built, gate)) for row in range(1, 7)]
    assert settles(built, [1])
    ending = threading.Thread(target=beside.give_up)
    ending.start()
    with pytest.raises(CancelledError):
        drafts[4]()
    assert ending.is_alive()  # it waits for what has begun
    gate.set()
    ending.join(20)
    assert built == [1]
    assert row_of(drafts[0]) == 1
    assert row_of(beside.add(Drafted(9, built))) == 9
