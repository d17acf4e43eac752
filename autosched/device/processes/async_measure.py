"""Work on the timing worker beside the rest of a process: one thread waits for it, and the one that gave it the work
keeps off the cores on which it times.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from autosched.device.processes.daemon_thread import DaemonThread, settled

T = TypeVar("T")
PATIENCE_S, LIMIT_S = 0.2, 2.0
"""Seconds that started work may go on by itself, and then while what it waits for is ended; then its thread is
dropped."""


class MeasureThread:
    """Runs what it is given in order, in a thread of its own. The thread that gave it runs on `spare` CPUs only while
    something is timed; afterwards it may use `everywhere` again."""

    def __init__(self, spare: Sequence[int], everywhere: Sequence[int]) -> None:
        self.spare, self.everywhere = spare, everywhere
        self._thread: DaemonThread | None = None
        self._lock = threading.Lock()
        self._timing = 0
        self._futures: list[Future[Any]] = []
        self._dropped: list[Future[Any]] = []
        self._caller = 0

    def begin(self, work: Callable[[], T], apart: bool = True) -> Future[T]:
        """Run `work` behind what was begun before. `apart`: it times something."""
        if self._thread is None:
            self._thread = DaemonThread("autosched-aside")
        future = self._thread.submit(work)
        if apart:
            self._caller = threading.get_native_id()
            self._count(1)
            future.add_done_callback(lambda _: self._count(-1))
        self._futures = [*(f for f in self._futures if not f.done()), future]
        return future

    def cancel(self) -> None:
        """See to it that nothing starts that has not yet."""
        for future in self._futures:
            future.cancel()

    def settle(self, stop: Callable[[], None] = lambda: None, limit_s: float = LIMIT_S) -> None:
        """Wait for what has started; `stop` ends the process that it waits for."""
        if not settled(self._futures, stop, PATIENCE_S, limit_s):
            self._dropped += [f for f in self._futures if not f.done()]
            self.close()
        self._futures = []

    @property
    def dropped(self) -> bool:
        """Whether work of a thread that was dropped still goes on."""
        self._dropped = [f for f in self._dropped if not f.done()]
        return bool(self._dropped)

    def close(self) -> None:
        """Let the thread end."""
        self.cancel()
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    def _count(self, change: int) -> None:
        with self._lock:
            before, self._timing = self._timing, self._timing + change
            if before == 0:
                self._confine(self.spare)
            elif self._timing == 0:
                self._confine(self.everywhere)

    def _confine(self, cpus: Sequence[int]) -> None:
        if hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._caller, cpus)
