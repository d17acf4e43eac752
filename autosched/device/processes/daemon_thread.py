"""`DaemonThread`: work in another thread, in order, which the end of the process does not wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
AGAIN_S = 0.05
"""Seconds between two calls of `stop`: work that lost one process may start the next."""


class DaemonThread:
    """A thread that does what it is given, one after the other, and is started when it is first given something.

    Python cannot stop it in the midst of something. Whoever wants that ends the processes that it waits for
    (`settled`), and drops the thread where it computes in Python. `ThreadPoolExecutor` is not used, since the
    interpreter waits for its threads, dropped ones too, before it ends.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Do the work behind what was given before."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = work()
            except BaseException as error:  # whoever asks for the result gets it
                future.set_exception(error)
            else:
                future.set_result(found)

        self._work.put(run)
        if self._thread is None:
            self._thread = threading.Thread(target=_work_off, args=(self._work,), name=self.name, daemon=True)
            self._thread.start()
        return future

    def close(self) -> None:
        """Let the thread end after what it was given."""
        self._work.put(None)


def settled(futures: Sequence[Future[Any]], stop: Callable[[], None], patience_s: float, limit_s: float) -> bool:
    """Whether all futures are done: waits `patience_s` for them to end by themselves, then at most `limit_s` while it
    calls `stop`, which ends the processes that they wait for, again and again."""
    left = wait(futures, patience_s).not_done
    end = time.monotonic() + limit_s
    while left and time.monotonic() < end:
        stop()
        left = wait(left, AGAIN_S).not_done
    return not left


def _work_off(work: SimpleQueue[Callable[[], None] | None]) -> None:
    while (run := work.get()) is not None:
        run()
        del run  # and what it holds
