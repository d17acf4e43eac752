"""CUDA texts to cubins on several cores, each in a process of its own: a text that ends the compiler, or never ends it,
costs no more than its candidate."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from autosched.device.cuda.compile.cubins import CubinCache, cubin_key
from autosched.device.cuda.compile.nvrtc import Cubin, CudaCompileError, compile_cuda
from autosched.device.cuda.compile.toolkit import Toolkit, toolkit
from autosched.device.processes.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError
from autosched.device.processes.serve import connect
from autosched.errors import AutoschedError

BUILD_LIMIT_S = 120.0


@dataclass(frozen=True)
class TranslationUnit:
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
        self._begun: dict[str, Future[Cubin | CudaCompileError]] = {}
        self._given_up = False
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self.most)
        self._workers = [WorkerProcess("autosched.device.cuda.compile.builder") for _ in range(self.most)]
        self._free: SimpleQueue[WorkerProcess] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)

    def build(self, source: TranslationUnit) -> Cubin:
        """The cubin. CudaCompileError; MissingError where no NVRTC knows the architecture."""
        (made,) = self.build_all([source])
        if isinstance(made, CudaCompileError):
            raise made
        return made

    def build_all(self, sources: Sequence[TranslationUnit]) -> list[Cubin | CudaCompileError]:
        """A cubin, or why there is none, for each, in order; equal sources are compiled once. MissingError as above."""
        begun = [self.begin(s) for s in sources]
        try:
            return [waiting.result() for waiting in begun]
        except BaseException:  # Ctrl-C, a deadline
            self.give_up(begun)
            raise

    def begin(self, source: TranslationUnit) -> Future[Cubin | CudaCompileError]:
        """Compile beside what was begun before. MissingError where no NVRTC knows the architecture."""
        kit = toolkit(source.arch, self.newest)
        key = cubin_key(source.text, source.headers, source.arch, f"{kit.name} {kit.release}")
        with self._lock:
            self._given_up = False
            waiting = self._begun.get(key)
            if waiting is None or (waiting.done() and not _kept(waiting)):
                waiting = self._begun[key] = self._pool.submit(self._made, key, source, kit)
            return waiting

    def _made(self, key: str, source: TranslationUnit, kit: Toolkit) -> Cubin | CudaCompileError:
        known = self.cache.get(key) if self.cache is not None else None
        if known is not None:
            return known
        worker = self._free.get()
        try:
            made = self._compile(worker, source, kit)
        finally:
            self._free.put(worker)
        if isinstance(made, Cubin) and self.cache is not None:
            self.cache.put(key, made)
        return made

    def give_up(self, begun: Iterable[Future[Cubin | CudaCompileError]]) -> None:
        """Cancel the compilations `begun` whose results the caller no longer wants."""
        self._given_up = True
        for waiting in begun:
            waiting.cancel()
        for worker in self._workers:
            worker.kill()

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = ThreadPoolExecutor(self.most)  # who builds again starts anew

    def _compile(self, worker: WorkerProcess, source: TranslationUnit, kit: Toolkit) -> Cubin | CudaCompileError:
        for attempt in (1, 2):
            if self._given_up:
                break
            try:
                worker.ensure()
                answer: Cubin | CudaCompileError = worker.ask(source, kit, deadline_s=self.deadline_s)
                return answer
            except WorkerTimeoutError:
                return CudaCompileError(f"NVRTC did not finish within {self.deadline_s:g} s")
            except WorkerDiedError as death:
                if not (death.outside and attempt == 1):
                    return CudaCompileError(f"NVRTC ended with {death.reason}: {death.stderr[-300:]}")
            except RuntimeError as error:
                return CudaCompileError(f"NVRTC: {error}")
        return CudaCompileError("NVRTC was given up")


def _kept(done: Future[Cubin | CudaCompileError]) -> bool:
    """Whether it is worth keeping: what failed is tried again."""
    return not done.cancelled() and done.exception() is None and isinstance(done.result(), Cubin)


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
            made: Cubin | CudaCompileError = compile_cuda(source.text, source.arch, source.headers, kit=kit)
        except CudaCompileError as error:
            made = error
        except AutoschedError as error:
            made = CudaCompileError(error.message)
        connection.send(("done", made))
