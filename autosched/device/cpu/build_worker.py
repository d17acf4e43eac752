"""The build process: makes object code from LLVM text or from a plan. It receives messages (what, …), where `what` is
`object`, `objects`, `assembly`, `ready` or `build`."""

from __future__ import annotations

from functools import cached_property
from threading import Thread
from typing import TYPE_CHECKING, Any

from autosched.codegen.llvm.machine.compile import assembly, compile_object
from autosched.device.cpu.compiled import Compiled
from autosched.device.processes.serve import connect
from autosched.errors import AutoschedError

if TYPE_CHECKING:
    from autosched.device.cpu.build_server import BuildServer


def main(connection_fd: int, life_fd: int) -> None:
    """Serve until the parent closes the connection."""
    connection = connect(connection_fd, life_fd)
    connection.send(("done", None))
    answers = _Answers()
    while True:
        try:
            what, *request = connection.recv()
        except (EOFError, OSError):
            return
        try:
            connection.send(("done", answers.of(what, request)))
        except AutoschedError as error:
            connection.send(("failed", error.message))
        except Exception as error:
            connection.send(("failed", f"{type(error).__name__}: {error}"))


class _Answers:
    """The answers to requests. Lowering is loaded at the first request that needs it, since most only compile."""

    def __init__(self) -> None:
        self.compiled = Compiled()
        self._loading: Thread | None = None

    def ready(self) -> bool:
        """Begin to load what `build` needs; returns whether it is loaded (the first use raises what went wrong)."""
        if self._loading is None:
            self._loading = Thread(target=lambda: self.server, daemon=True)
            self._loading.start()
        return not self._loading.is_alive()

    @cached_property
    def server(self) -> BuildServer:
        from autosched.device.cpu.build_server import BuildServer

        return BuildServer(self.compiled)

    def of(self, what: str, request: list[Any]) -> Any:
        match what:
            case "build":
                return self.server.build(*request)
            case "ready":
                return self.ready()
            case "objects":
                return self.compiled.objects(*request)
        text, cpu, features, triple = request
        make = assembly if what == "assembly" else compile_object
        return make(text, cpu, features, triple=triple)
