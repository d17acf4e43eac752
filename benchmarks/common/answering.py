"""Processes that answer lines with JSON: two kernels that cannot share a process are timed in turn through them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


class Answering:
    """A process that answers lines with JSON. It is ended on exit."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, text: str) -> Any:
        """Send a line, and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        """The next line; `{"error": …}` where the process ended."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline()
        return json.loads(found) if found else {"error": f"the process ended ({self._process.wait()})"}


def kernel(store: str, study: str, threads: int = 1) -> Answering:
    """The best kernel of a stored study; ask it for `time`, after its first answer."""
    return Answering([sys.executable, "-m", "benchmarks.common.kernel", store, study, str(threads)])
