"""The timing worker: a fresh interpreter that runs candidates for its parent, one at a time.

It may die of a candidate; nothing but the candidate is lost then. Messages on the connection are (what, …) tuples:
`data`, `wants`, `refer`, `beside`, `measure`, `interleaved` come in; `at` (a stage begins) and `done` go out.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from autosched.device.cpu.bench import CpuBench
from autosched.device.cpu.data import CpuData
from autosched.device.cpu.run_plain import run_plain
from autosched.device.processes.serve import connect
from autosched.machine import native


def main(connection_fd: int, life_fd: int, cpus: tuple[int, ...]) -> None:
    """Serve until the parent closes the connection. Threads of a parallel kernel are pinned to `cpus`, this one to
    the first of them."""
    folders: list[str] = []
    connection = connect(connection_fd, life_fd, folders)
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cpus[:1])
    native.start()
    if len(cpus) > 1:
        from autosched.codegen.llvm.machine.runtime import pool

        pool().start(len(cpus), cpus)
    bench: CpuBench | None = None
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
                    folders[:] = [folder]
                    bench = None  # let go of the last one's memory first
                    bench = CpuBench(CpuData(Path(folder), tensors), cold_bytes, Path(folder))
                    answer: Any = None
                case "wants":
                    assert bench is not None
                    answer = bench.data_of(*rest).read_wants()
                case "refer":
                    assert bench is not None
                    name, kept, *asked = rest
                    data = bench.data_of(name)
                    answer = data.refer(*run_plain(data, Path(kept), *asked))
                case "beside":
                    assert bench is not None
                    (bench.beside,) = rest
                    answer = None
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
