"""The timing worker: a fresh interpreter that runs candidates for its parent, one at a time.

It may die of a candidate; nothing but the candidate is lost then. Messages on the connection are (what, …) tuples:
`data`, `measure`, `interleaved` come in; `at` (a stage begins) and `done` go out.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from autosched.device import native
from autosched.device.bench import Bench, Data


def main(connection_fd: int, life_fd: int, cpus: tuple[int, ...]) -> None:
    """Serve until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is expected here; no core files
    threading.Thread(target=_die_with_parent, args=(life_fd,), daemon=True).start()
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cpus)
    native.start()
    connection: Connection[Any, Any] = Connection(connection_fd)
    bench: Bench | None = None
    connection.send(("done", None))
    while True:
        try:
            what, *rest = connection.recv()
        except (EOFError, OSError):
            return

        def report(stage: str) -> None:
            connection.send(("at", stage))

        try:
            match what:
                case "data":
                    folder, tensors, cold_bytes = rest
                    bench = None  # let go of the last one's memory first
                    bench = Bench(Data(Path(folder), tensors), cold_bytes)
                    answer: Any = None
                case "measure":
                    assert bench is not None
                    job, effort = rest
                    answer = bench.measure(job, effort, report)
                case "interleaved":
                    assert bench is not None
                    jobs, rounds, effort = rest
                    answer = bench.interleaved(jobs, rounds, effort, report)
            connection.send(("done", answer))
        except Exception as error:  # ours, not the kernel's: the parent raises it
            connection.send(("failed", f"{type(error).__name__}: {error}"))


def _die_with_parent(life_fd: int) -> None:
    """The parent holds the other end of this pipe and never writes: reading returns when the parent is gone.

    A kernel that spins does not hold the interpreter's lock, so this thread still gets to run.
    """
    with contextlib.suppress(OSError):
        os.read(life_fd, 1)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), tuple(int(c) for c in sys.argv[3].split(",") if c))
