"""CUDA texts to cubins on several cores, each in a process of its own: a text that ends the compiler, or never ends it,
costs no more than its candidate."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from autosched.device.cuda.cubins import CubinCache, cubin_key
from autosched.device.cuda.nvrtc import CompileError, Cubin, compile_cuda
from autosched.device.cuda.toolkit import Toolkit, toolkit
from autosched.device.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError
from autosched.device.serve import connect
from autosched.errors import AutoschedError

BUILD_LIMIT_S = 120.0
PATIENCE, LEAST_S, KNOWN = 5.0, 20.0, 4
"""Once so many texts are compiled, none is given more than this many times what the slowest of them took, or the least:
one that takes minutes beside others of a second (a baseline, say) costs more than it can tell."""


@dataclass(frozen=True)
class Source:
    """A text with the headers that it includes, for one architecture."""

    text: str
    arch: str
    headers: Mapping[str, str] = field(default_factory=dict)


class CudaBuilder:
    """Compiles sources; keeps what it compiled, in `cache` too where one is given. Several threads may ask at once.

    `newest` is the CUDA version of the driver that will load the code (None: any). `processes` are started as needed.
    """

    def __init__(
        self,
        cache: CubinCache | None = None,
        newest: tuple[int, int] | None = None,
        processes: int | None = None,
        deadline_s: float = BUILD_LIMIT_S,
    ) -> None:
        self.cache, self.newest, self.deadline_s = cache, newest, deadline_s
        self.most = processes or len(os.sched_getaffinity(0))
        self._begun: dict[str, Future[Cubin | CompileError]] = {}
        self._took_s: list[float] = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self.most)
        self._workers = [WorkerProcess("autosched.device.cuda.builder") for _ in range(self.most)]
        self._free: SimpleQueue[WorkerProcess] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)

    def build(self, source: Source) -> Cubin:
        """The cubin. CompileError; MissingError where no NVRTC knows the architecture."""
        (made,) = self.build_all([source])
        if isinstance(made, CompileError):
            raise made
        return made

    def build_all(self, sources: Sequence[Source]) -> list[Cubin | CompileError]:
        """A cubin, or why there is none, for each, in order; equal sources are compiled once. MissingError as above."""
        return [waiting.result() for waiting in [self.begin(s) for s in sources]]

    def begin(self, source: Source) -> Future[Cubin | CompileError]:
        """Compile beside what was begun before. MissingError where no NVRTC knows the architecture."""
        kit = toolkit(source.arch, self.newest)
        key = cubin_key(source.text, source.headers, source.arch, f"{kit.name} {kit.release}")
        with self._lock:
            waiting = self._begun.get(key)
            if waiting is None or (waiting.done() and not isinstance(waiting.result(), Cubin)):
                waiting = self._begun[key] = self._pool.submit(self._made, key, source, kit)
            return waiting

    def _made(self, key: str, source: Source, kit: Toolkit) -> Cubin | CompileError:
        known = self.cache.get(key) if self.cache is not None else None
        if known is not None:
            return known
        worker, clock = self._free.get(), time.monotonic()
        try:
            made = self._compile(worker, source, kit)
        finally:
            self._free.put(worker)
        if isinstance(made, Cubin):
            with self._lock:
                self._took_s.append(time.monotonic() - clock)
            if self.cache is not None:
                self.cache.put(key, made)
        return made

    @property
    def patience_s(self) -> float:
        """How long a text may take now."""
        with self._lock:
            if len(self._took_s) < KNOWN:
                return self.deadline_s
            return min(self.deadline_s, max(LEAST_S, PATIENCE * max(self._took_s)))

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = ThreadPoolExecutor(self.most)  # who builds again starts anew

    def _compile(self, worker: WorkerProcess, source: Source, kit: Toolkit) -> Cubin | CompileError:
        limit_s = self.patience_s
        for attempt in (1, 2):
            try:
                worker.ensure()
                answer: Cubin | CompileError = worker.ask(source, kit, deadline_s=limit_s)
                return answer
            except WorkerTimeoutError:
                return CompileError(f"NVRTC did not finish within {limit_s:.3g} s")
            except WorkerDiedError as death:
                if not (death.outside and attempt == 1):
                    return CompileError(f"NVRTC ended with {death.reason}: {death.stderr[-300:]}")
            except RuntimeError as error:
                return CompileError(f"NVRTC: {error}")
        raise AssertionError("unreachable")


def main(connection_fd: int, life_fd: int) -> None:
    """Serve until the parent closes the connection."""
    connection = connect(connection_fd, life_fd)
    connection.send(("done", None))
    while True:
        try:
            source, kit = connection.recv()
        except (EOFError, OSError):
            return
        try:
            made: Cubin | CompileError = compile_cuda(source.text, source.arch, source.headers, kit=kit)
        except CompileError as error:
            made = error
        except AutoschedError as error:
            made = CompileError(error.message)
        connection.send(("done", made))
