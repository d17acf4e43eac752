"""`Cancellable`: work in another thread that a run can cancel when it ends."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")
AGAIN_S = 0.05
"""Seconds between two attempts: Python may drop the exception, and the work may catch it."""


class Cancelled(BaseException):
    """What `cancel` raises in the thread. No `Exception`, since candidates' errors are caught as such."""


class Cancellable:
    """Runs work of one thread at a time; other threads may cancel it. The work ends at its next step in Python: native
    code and processes that it waits for must be ended by the caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None

    def __call__(self, work: Callable[[], T]) -> T:
        """Do the work. Raises Cancelled where it was cancelled."""
        with self._lock:
            self._thread = threading.get_ident()
        try:
            try:
                return work()
            finally:
                self._ended()
        except Cancelled:  # it may come as late as in `_ended`
            self._ended()
            raise

    def cancel(self) -> None:
        """Cancel the work that is under way, if any is."""
        with self._lock:
            if self._thread is not None:
                _raise_in(self._thread, Cancelled)

    def _ended(self) -> None:
        with self._lock:
            self._thread = None
            _raise_in(threading.get_ident(), None)  # an exception that has not been raised yet


def settled(futures: Sequence[Future[Any]], cancel: Callable[[], None], patience_s: float, limit_s: float) -> bool:
    """Whether all futures are done: waits `patience_s` for them to end by themselves, then at most `limit_s` while it
    calls `cancel` again and again."""
    left = wait(futures, patience_s).not_done
    end = time.monotonic() + limit_s
    while left and time.monotonic() < end:
        cancel()
        left = wait(left, AGAIN_S).not_done
    return not left


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind))
