"""The parent's side of the build process, which makes object code from LLVM text. LLVM ends its process for some texts
(an instruction that the CPU named does not have: `LLVM ERROR: Cannot select`), and that must cost no more than the
candidate."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from threading import Lock
from typing import Any

from autosched.device.cpu.remote_build import BuildRequest, BuildResult
from autosched.device.processes.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError
from autosched.errors import AutoschedError

BUILD_LIMIT_S = 60.0


class BuildError(AutoschedError):
    """A kernel's text that does not compile; the message is LLVM's."""


class Builder:
    """Compiles in a process of its own, which is started when first needed."""

    def __init__(self, deadline_s: float = BUILD_LIMIT_S) -> None:
        self.deadline_s = deadline_s
        self.process = WorkerProcess("autosched.device.cpu.build_worker")
        self._begun: tuple[Any, ...] | None = None
        self._loaded = False
        self._one = Lock()  # a search compiles in a thread beside the one that may ask for a kernel meanwhile

    def compile(self, text: str, cpu: str | None = None, features: str | None = None) -> bytes:
        """Object code for `cpu` with `features` (None: this machine's). BuildError where LLVM refuses or dies."""
        with self._one:
            return bytes(self._ask("object", text, cpu, features, None))

    def compile_all(
        self, texts: tuple[str, ...], cpu: str | None = None, features: str | None = None
    ) -> tuple[bytes, ...]:
        """Object code of each module; what was compiled lately is not compiled again. BuildError as from `compile`."""
        with self._one:
            return tuple(self._ask("objects", texts, cpu, features))

    def build(self, request: BuildRequest) -> BuildResult | None:
        """`BuildServer.build` in the build process. BuildError as from `compile`."""
        with self._one:
            built: BuildResult | None = self._ask("build", request)
            return built

    def keep_to(self, cpus: Sequence[int]) -> None:
        """Have it work on these CPUs only, from now on: all of its threads, one of which may still be loading."""
        pid = self.process.pid
        if pid is not None and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):  # it has just ended
                for thread in os.listdir(f"/proc/{pid}/task"):
                    os.sched_setaffinity(int(thread), cpus)

    def ready(self) -> bool:
        """Have a process, and have it load what build requests need (about a second); whether it has."""
        if not self._loaded:
            with self._one:
                try:
                    self._loaded = bool(self._ask("ready"))
                except BuildError:
                    self._loaded = True  # or it would be asked for ever; whoever builds is told
        return self._loaded

    def begin(self, texts: tuple[str, ...], cpu: str | None = None, features: str | None = None) -> None:
        """`compile_all` without waiting for it; `finish` must follow."""
        request = "objects", texts, cpu, features
        self.process.ensure()
        with contextlib.suppress(WorkerDiedError):  # `finish` asks again
            self.process.send(*request)
        self._begun = request

    def finish(self) -> tuple[bytes, ...]:
        """What `begin` began. BuildError as from `compile`."""
        request, self._begun = self._begun, None
        assert request is not None
        return tuple(self._ask(*request, sent=self.process.pid is not None))

    def give_up(self) -> None:
        """Forget what was begun and not finished: its answer must not be taken for the next one's."""
        if self._begun is not None:
            self._begun = None
            self.process.close()

    def assembly(
        self, text: str, cpu: str | None = None, features: str | None = None, triple: str | None = None
    ) -> str:
        """The assembly text of it, for the machine of `triple` where one is named. BuildError as from `compile`."""
        return str(self._ask("assembly", text, cpu, features, triple))

    def _ask(self, *request: Any, sent: bool = False) -> Any:
        for attempt in (1, 2):
            try:
                if not (sent and attempt == 1):
                    self.process.ensure()
                    self.process.send(*request)
                return self.process.answer(self.deadline_s)
            except WorkerTimeoutError:
                raise BuildError(f"LLVM did not finish within {self.deadline_s:g} s") from None
            except WorkerDiedError as death:
                if not (death.outside and attempt == 1):
                    raise BuildError(_last_words(death)) from None
            except RuntimeError as error:
                raise BuildError(str(error)) from None
        raise AssertionError("unreachable")

    def kill(self) -> None:
        """End the process from another thread than that which waits for it; there is a new one when it is needed."""
        self.process.kill()
        self._loaded = False

    def close(self) -> None:
        self.process.close()


def _last_words(death: WorkerDiedError) -> str:
    """LLVM's message, which stands on a line of its own."""
    lines = [line for line in death.stderr.splitlines() if "error" in line.lower()]
    return lines[-1] if lines else f"LLVM ended with {death.reason}"
