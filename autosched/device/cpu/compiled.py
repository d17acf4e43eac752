"""Objects of modules that were compiled lately: candidates differ in their loops more often than in how they pack."""

from __future__ import annotations

from collections.abc import Callable

from autosched.codegen.llvm.machine.compile import compile_object

KEPT = 64
"""Objects that are kept, some ten kilobytes each: the last packings, and the finalists of a search."""


class Compiled:
    """Compiles what is not known, with `compile`."""

    def __init__(self, compile: Callable[..., bytes] = compile_object) -> None:
        self._compile = compile
        self._known: dict[tuple[str, str | None, str | None], bytes] = {}

    def objects(self, texts: tuple[str, ...], cpu: str | None, features: str | None) -> tuple[bytes, ...]:
        """The object file of each module's text. LlvmCompileError and MissingError as from `compile_object`."""
        return tuple(self._object((text, cpu, features)) for text in texts)

    def _object(self, key: tuple[str, str | None, str | None]) -> bytes:
        found = self._known.pop(key, None)
        if found is None:
            found = self._compile(*key)
        self._known[key] = found  # the last one now
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return found
