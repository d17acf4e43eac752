"""CUDA texts to cubins on several cores, each in a process of its own: a text that ends the compiler, or never ends it,
costs no more than its candidate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from autosched.device.cuda.cubins import CubinCache, cubin_key
from autosched.device.cuda.nvrtc import CompileError, Cubin, compile_cuda
from autosched.device.cuda.toolkit import Toolkit, toolkit
from autosched.device.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError
from autosched.device.serve import connect
from autosched.errors import AutoschedError

BUILD_LIMIT_S = 120.0


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
        self._done: dict[str, Cubin] = {}
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
        kits = {s.arch: toolkit(s.arch, self.newest) for s in sources}
        keys = [cubin_key(s.text, s.headers, s.arch, f"{kits[s.arch].name} {kits[s.arch].release}") for s in sources]
        missing = {k: s for k, s in zip(keys, sources, strict=True) if self._known(k) is None}
        failed: dict[str, CompileError] = {}

        def compiled(item: tuple[str, Source]) -> tuple[str, Cubin | CompileError]:
            worker = self._free.get()
            try:
                return item[0], self._compile(worker, item[1], kits[item[1].arch])
            finally:
                self._free.put(worker)

        if missing:
            with ThreadPoolExecutor(min(self.most, len(missing))) as pool:
                for key, made in pool.map(compiled, missing.items()):
                    if isinstance(made, CompileError):
                        failed[key] = made
                    else:
                        self._keep(key, made)
        return [failed[k] if k in failed else self._done[k] for k in keys]

    def close(self) -> None:
        for worker in self._workers:
            worker.close()

    def _known(self, key: str) -> Cubin | None:
        if key not in self._done and self.cache is not None and (found := self.cache.get(key)) is not None:
            self._done[key] = found
        return self._done.get(key)

    def _keep(self, key: str, cubin: Cubin) -> None:
        self._done[key] = cubin
        if self.cache is not None:
            self.cache.put(key, cubin)

    def _compile(self, worker: WorkerProcess, source: Source, kit: Toolkit) -> Cubin | CompileError:
        for attempt in (1, 2):
            try:
                worker.ensure()
                answer: Cubin | CompileError = worker.ask(source, kit, deadline_s=self.deadline_s)
                return answer
            except WorkerTimeoutError:
                return CompileError(f"NVRTC did not finish within {self.deadline_s:g} s")
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
