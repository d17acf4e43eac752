"""`--timeout` before the first trial: the loop watches the clock between trials, nobody else does before them.

Matching, laying out spaces and computing the expected outputs run in this thread, as Python; an alarm ends them.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from autosched.errors import NoScheduleError
from autosched.search import events


class _Late(BaseException):
    """Passes through the loop, which records any Exception of a measurement as a failed trial."""


class Deadline:
    """A context that raises NoScheduleError after `seconds`, unless a trial is done by then: it listens for one."""

    def __init__(self, seconds: float | None, listener: events.Listener) -> None:
        self.seconds, self.listener = seconds, listener
        self.phase = "matching"
        self._before: Callable[[int, FrameType | None], Any] | int | None = None

    def __enter__(self) -> Deadline:
        if self.seconds is not None and hasattr(signal, "setitimer"):
            self._before = signal.signal(signal.SIGALRM, self._late)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            self._stop()
            signal.signal(signal.SIGALRM, self._before)
        if kind is _Late:
            raise NoScheduleError(
                f"--timeout {self.seconds:g} s was over before the first trial, while {self.phase}",
                hint="give more time, or smaller sizes: every candidate is compared with the interpreter's answer",
            ) from None

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.Matched():
                self.phase = "laying out the spaces"
            case events.StudyOpened():
                self.phase = "computing the expected outputs with the interpreter"
            case events.TrialDone():
                self._stop()
        self.listener(event)

    def _stop(self) -> None:
        if self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _late(self, number: int, frame: FrameType | None) -> None:
        raise _Late
