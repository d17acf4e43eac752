"""Builds in turn have a deadline for each stage: many runs of slow kernels may take long; one that hangs is seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from autosched.device.job import Outcome
from autosched.device.processes import process
from autosched.device.processes.process import WorkerProcess, ask_worker, stage_said


@dataclass
class Answering:
    """A worker's side of a connection: it reports stages, each after so many seconds, and then answers."""

    takes_s: list[float]
    now: float = 0.0
    asked: list[Any] = field(default_factory=list)

    def send(self, message: Any) -> None:
        self.asked.append(message)

    def poll(self, left_s: float) -> bool:
        self.now += min(left_s, self.takes_s[0])
        return self.takes_s[0] < left_s

    def recv(self) -> tuple[str, Any]:
        self.takes_s.pop(0)
        return ("at", f"time {len(self.takes_s) % 2}") if self.takes_s else ("done", "all right")


def asked(monkeypatch: pytest.MonkeyPatch, what: str, takes_s: list[float]) -> Any:
    there = Answering(takes_s)
    monkeypatch.setattr(process.time, "monotonic", lambda: there.now)
    monkeypatch.setattr(WorkerProcess, "_connected", lambda self: there)
    return ask_worker(WorkerProcess("nobody"), (what,), 1.0, lambda: True, str)


def test_rounds_of_slow_kernels_come_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, "interleaved", [0.9] * 12) == "all right"


def test_a_measurement_alone_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    late = asked(monkeypatch, "measure", [0.9] * 12)
    assert isinstance(late, Outcome)
    assert (late.status, late.extra) == ("timeout", {"stage": "time 1"})


def test_a_round_that_hangs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    late = asked(monkeypatch, "interleaved", [0.9, 0.9, 0.9, 60.0, 0.1])
    assert (late.status, late.extra) == ("timeout", {"stage": "time 0"})
    assert late.message == "no end after 1 s while it was timed, in turn with others"


def test_stages_in_words() -> None:
    assert stage_said("check") == "while its results were checked"
    assert stage_said("check 3") == "while its results were checked, in turn with others"
    assert stage_said("warming") == "in stage warming"
