"""`LetGo`: Python code in another thread is told to stop, for work that nobody waits for any more."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")
AGAIN_S = 0.05
"""Seconds between two attempts: an exception may come where Python drops it, or somebody may catch it."""


class GivenUp(BaseException):
    """What comes up in the thread."""


class LetGo:
    """Work of one thread at a time that others may stop. It stops at its next step in Python: what it calls, and waits
    for, must end by itself or be ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None

    def __call__(self, work: Callable[[], T]) -> T:
        """Do the work. GivenUp where it was stopped."""
        with self._lock:
            self._thread = threading.get_ident()
        try:
            try:
                return work()
            finally:
                self._ended()
        except GivenUp:  # perhaps on the way out
            self._ended()
            raise

    def stop(self) -> None:
        """Have the work that is under way stop, if any is."""
        with self._lock:
            if self._thread is not None:
                _raise_in(self._thread, GivenUp)

    def _ended(self) -> None:
        with self._lock:
            self._thread = None
            _raise_in(threading.get_ident(), None)  # it may not have come up yet


def settled(futures: Sequence[Future[Any]], stop: Callable[[], None], patience_s: float, limit_s: float) -> bool:
    """Wait until all are done: `patience_s` for them to end by themselves, then `limit_s` while they are told to
    `stop`. Whether they are."""
    left = wait(futures, patience_s).not_done
    end = time.monotonic() + limit_s
    while left and time.monotonic() < end:
        stop()
        left = wait(left, AGAIN_S).not_done
    return not left


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind))
