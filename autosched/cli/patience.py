"""Says on standard error what a command is doing that takes long."""

from __future__ import annotations

import time
from threading import Event, Thread
from types import TracebackType

from autosched.cli.output import talk

EVERY_S = 10.0


class Patience:
    """As a context manager: where `every_s` seconds pass, a line says what is `doing`, and for how long the command has
    run. Nothing is said with `quiet`."""

    def __init__(self, doing: str, *, quiet: bool = False, every_s: float = EVERY_S) -> None:
        self.doing, self.quiet, self.every_s = doing, quiet, every_s
        self._over = Event()

    def __enter__(self) -> Patience:
        if not self.quiet:
            Thread(target=self._wait, args=(time.monotonic(),), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()

    def _wait(self, began: float) -> None:
        while not self._over.wait(self.every_s):
            talk().print(f"...    {self.doing} ({time.monotonic() - began:.0f} s so far)", markup=False)
