"""`--timeout`, seen to from outside the main thread: a run that neither ends nor can be interrupted is answered for."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from autosched.cli.output import complain, talk
from autosched.errors import AutoschedError
from autosched.search.tuning.deadline import Deadline

GRACE_S = 1.25
"""Seconds past the end that a run has to end by itself."""
ANSWER_S = 0.5
"""What the thread beside it has then, before the process ends all the same: code may hold Python's lock, and no thread
runs."""

STDERR = 2
"""The descriptor, whatever stands for the stream."""


class Outside:
    """A context for a run with a deadline. Past its end, and some grace, a thread has `say` answer with what was found
    so far (it returns the exit status) and ends the process. `fail` answers where nothing was. `say` is called with the
    deadline's `tuning` and what its `so_far` answers, which has a `best`: None where nothing was found."""

    def __init__(self, deadline: Deadline, say: Callable[[Any, Any], int]) -> None:
        self.deadline, self.say = deadline, say
        self.fail: Callable[[AutoschedError], None] = lambda error: None
        self._done = threading.Event()

    def __enter__(self) -> Outside:
        left_s = self.deadline.left_s
        if left_s is not None:
            with contextlib.suppress(OSError, ValueError):  # nowhere to write to
                faulthandler.dump_traceback_later(left_s + GRACE_S + ANSWER_S, exit=True, file=STDERR)
            threading.Thread(target=self._watch, args=(left_s + GRACE_S,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        if self.deadline.end is not None:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self, seconds: float) -> None:
        if self._done.wait(seconds):
            return
        status = 1
        try:
            if sys.stderr.isatty():
                talk().show_cursor()
            status = self._answered()
        except Exception as error:  # the process ends below, and Python would print no traceback
            complain(f"what was found could not be told: {error!r}")
        finally:
            leave(status)

    def _answered(self) -> int:
        """Say what there is; the exit status."""
        tuning = self.deadline.tuning
        so_far = self.deadline.so_far
        result = so_far() if tuning is not None and so_far is not None else None
        if tuning is None or result is None or result.best is None:
            error = self.deadline.failed()
            self.fail(error)
            complain(str(error))
            return 1
        complain(f"--timeout {self.deadline.seconds:g} s were over, and the run did not stop by itself: it was ended")
        return self.say(tuning, result)


def leave(status: int) -> None:
    """End the process, whatever its threads are doing."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)
