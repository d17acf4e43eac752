"""The CUDA worker: a fresh interpreter that launches candidates for its parent, one at a time.

It may die of a candidate, or lose its context to one and end itself: nothing but the candidate is lost then. Messages
are those of `device.cpu.worker`, and `card`, which asks for the device's facts.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from autosched.device.cuda.bench import CudaBench, LoadedCandidate
from autosched.device.cuda.clocks import Clocks
from autosched.device.cuda.comparing import Comparer
from autosched.device.cuda.data import CudaData
from autosched.device.cuda.driver import Card, CudaError
from autosched.device.job import Outcome
from autosched.device.processes.serve import connect
from autosched.errors import MissingError


def main(connection_fd: int, life_fd: int, ordinal: int) -> None:
    """Serve until the parent closes the connection, or until the device's context is lost."""
    folders: list[str] = []
    connection = connect(connection_fd, life_fd, folders)
    connection.send(("done", None))
    CudaServer(connection, lambda: Card(ordinal), Clocks(ordinal), folders).run()


class CudaServer:
    """Answers requests on a connection; `make` opens the GPU at the first of them."""

    def __init__(
        self, connection: Connection[Any, Any], make: Callable[[], Card], clocks: Clocks, folders: list[str]
    ) -> None:
        self.connection, self.make, self.clocks, self.folders = connection, make, clocks, folders
        self.card: Card | None = None
        self.bench: CudaBench | None = None
        self.stage = "start"

    def run(self) -> None:
        """Until the connection closes or the context is lost; that is said first, as the candidate's crash."""
        while True:
            try:
                what, *rest = self.connection.recv()
            except (EOFError, OSError):
                return
            try:
                answer = self.answer(what, rest)
            except CudaError as error:
                detail = {"stage": self.stage, "error": error.code}
                crash = Outcome("crash", message=f"{error.message} (stage {self.stage})", extra=detail)
                lost = what in ("measure", "interleaved", "probe")
                self.connection.send(("done", crash) if lost else ("failed", error.message))
                return
            except MissingError as error:
                self.connection.send(("failed", error))
            except Exception as error:  # ours, not the kernel's: the parent raises it
                self.connection.send(("failed", f"{type(error).__name__}: {error}"))
            else:
                self.connection.send(("done", answer))

    def answer(self, what: str, rest: list[Any]) -> Any:
        """What a request is answered with. CudaError where the device cannot be used any more."""
        if self.card is None:
            self.card = self.make()
        match what:
            case "card":
                return self.card.facts()
            case "data":
                folder, tensors, samples, comparing, *plain = rest
                self.folders[:] = [folder]
                if self.bench is not None:
                    self.bench.close()
                comparer = Comparer(self.card, comparing) if comparing else None
                data = CudaData(self.card, Path(folder), tensors, samples, comparer)
                self.bench = CudaBench(self.card, data, self.clocks)
                return [self.bench.refer(job, self.report) for job in plain] or None
            case "beside":
                assert self.bench is not None
                self.bench.use_beside(())  # give their memory back first
                made = []
                for name, folder, *of, scalars in rest[0]:
                    made.append((name, CudaData(self.card, Path(folder), *of), scalars))
                self.bench.use_beside(tuple(made))
                return None
            case "measure":
                assert self.bench is not None
                job, effort = rest
                return self.bench.measure(job, effort, self.report)
            case "probe":
                job, times, runs = rest
                ready = LoadedCandidate(self.card, CudaData(self.card, Path(), ()), job)
                try:
                    ready(times)
                    return min(ready(times) / times for _ in range(runs))
                finally:
                    ready.close()
            case _:
                assert what == "interleaved"
                assert self.bench is not None
                jobs, rounds, effort = rest
                return self.bench.interleaved(jobs, rounds, effort, self.report)

    def report(self, stage: str) -> None:
        """Tell the parent what comes next, so that a death can be placed."""
        self.stage = stage
        self.connection.send(("at", stage))
