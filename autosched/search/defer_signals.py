"""`defer_signals`: Ctrl-C and a deadline's alarm wait until what must be done whole is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGALRM") if hasattr(signal, name))


@contextmanager
def defer_signals() -> Iterator[None]:
    """What comes inside, in the main thread, is answered at the end, as it would have been. For moments only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[Callable[[], Any]] = []
    answers = {number: answer for number in SIGNALS if callable(answer := signal.getsignal(number))}
    for number, answer in answers.items():
        signal.signal(number, _keeping(came, answer))
    try:
        yield
    finally:
        for number, answer in answers.items():
            signal.signal(number, answer)
        if came:
            came[0]()


def _keeping(came: list[Callable[[], Any]], answer: Callable[..., Any]) -> Callable[[int, Any], None]:
    """A handler that keeps what came for later."""
    return lambda number, frame: came.append(partial(answer, number, frame))
