"""`Deadline`: a run ends at a time, whatever it is doing then.

An alarm raises `OutOfTime` in the main thread, in the midst of whatever computes, waits or sleeps there, a plug-in too.
What runs beside it is let go by who began it. In other threads Python has no such alarm: there the time is looked at
between trials.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, TypeVar

from autosched.errors import NoScheduleError, UsageError

T = TypeVar("T")
AGAIN_S = 0.5
"""Seconds until the alarm comes again where somebody caught the first, or it came where Python drops exceptions."""
CLOSING_S = 0.75
"""What putting things away may take at the end of a run with a deadline."""

ENOUGH = 4
"""Times the time that was too short for a first trial that is proposed instead."""
CHOOSING = "choosing the first candidate"
MEASURING = "computing the expected outputs, building and measuring"


class OutOfTime(BaseException):
    """The time of a run is over. No `Exception`, since what a candidate or a plug-in raises is caught as one."""


class Deadline:
    """A context inside which `OutOfTime` is raised once `seconds` from now are over (None: never), again and again
    until somebody calls `met`; past its end the exception becomes the error `failed`. One inside another ends at the
    earlier end.

    `began` is when they began, by `clock`, if not now. UsageError for no time at all.

    `doing` says, for people, what the time is spent on; `clock` gives seconds. `tuning` and `so_far` are what a thread
    that outlives a stuck one can answer with: the run's `Tuning` and its `Result`, classes that stand above this one.
    """

    def __init__(
        self, seconds: float | None, clock: Callable[[], float] = time.monotonic, began: float | None = None
    ) -> None:
        if seconds is not None and not seconds > 0:
            raise UsageError(f"timeout is {seconds} s, and must be above 0")
        self.seconds, self.clock = seconds, clock
        self.end = None if seconds is None else (clock() if began is None else began) + seconds
        self.doing = "reading the program"
        self.tuning: Any = None
        self.so_far: Callable[[], Any] | None = None
        self._before: Callable[[int, FrameType | None], Any] | int | None = None
        self._left_before = (0.0, 0.0)
        self._armed = False
        self._since = 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds to the end, 0 after it; None without one."""
        return None if self.end is None else max(0.0, self.end - self.clock())

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self.left_s == 0.0

    def met(self) -> None:
        """The alarm has been heard, or is not wanted for now."""
        if self._armed:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def again(self) -> None:
        """The alarm is wanted, inside the context; at once where the time is over."""
        if self._armed:
            left_s = self.left_s or 0.0
            if self._left_before[0]:  # an earlier end of somebody else counts here too
                left_s = min(left_s, self._left_before[0] - (time.monotonic() - self._since))
            signal.setitimer(signal.ITIMER_REAL, max(left_s, 0.01), AGAIN_S)

    def within(self, limit_s: float, work: Callable[[], T]) -> T | None:
        """What `work` answers; None where the run's time is over, and where the work takes longer than `limit_s` or
        than is left."""
        left_s = self.left_s
        if left_s == 0.0:
            return None
        try:
            with Deadline(limit_s if left_s is None else min(left_s, limit_s)):
                return work()
        except NoScheduleError:
            return None

    def failed(self) -> NoScheduleError:
        """What is said where the run has nothing to show."""
        return NoScheduleError(
            f"--timeout {self.seconds:g} s was over before the first trial, while {self.doing}",
            hint=f"pass --timeout {ENOUGH * (self.seconds or 0.0):g}s, or smaller sizes",
        )

    def __enter__(self) -> Deadline:
        here = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
        if self.end is not None and here:
            self._before = signal.signal(signal.SIGALRM, self._late)
            self._since, self._left_before = time.monotonic(), signal.getitimer(signal.ITIMER_REAL)
            self._armed = True
            self.again()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._armed:
            self.met()
            self._armed = False
            signal.signal(signal.SIGALRM, self._before or signal.SIG_DFL)
            left_s, again_s = self._left_before
            if left_s:  # somebody else's alarm
                told_s = AGAIN_S if kind is OutOfTime else 1e-6  # it need not come twice at once
                signal.setitimer(signal.ITIMER_REAL, max(left_s - (time.monotonic() - self._since), told_s), again_s)
        if kind in (OutOfTime, SystemError) and self.over:  # the parser of CPython 3.11 makes the one the other
            raise self.failed() from None

    def _late(self, number: int, frame: FrameType | None) -> None:
        raise OutOfTime


@contextmanager
def briefly(seconds: float = CLOSING_S, when: bool = True) -> Iterator[None]:
    """What is inside is left after `seconds`, done or not, `when` that is wanted: for what must not hold up an end."""
    if not when:
        yield
        return
    limit = Deadline(max(seconds, 1e-3))
    try:
        with limit:
            yield
    except NoScheduleError:
        if not limit.over:
            raise
