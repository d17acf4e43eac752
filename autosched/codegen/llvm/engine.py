"""Object bytes to loaded machine code, through LLVM's loader."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from autosched.codegen.llvm.compile import target_machine
from autosched.codegen.llvm.errors import CompileError

_OBJECT_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe")  # ELF; 64-bit Mach-O


class Module:
    """Loaded machine code. It lives as long as this object or one of its functions does."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def address(self, name: str) -> int:
        """The address of an exported function (CompileError where there is none of that name)."""
        found = int(self._engine.get_function_address(name))
        if not found:
            raise CompileError(f"the module has no function {name!r}")
        return found

    def function(self, name: str, arguments: Sequence[Any] | int = ()) -> Any:
        """A ctypes callable returning nothing; `arguments` are ctypes types, or a number of pointers."""
        kinds = [ctypes.c_void_p] * arguments if isinstance(arguments, int) else list(arguments)
        callable_ = ctypes.CFUNCTYPE(None, *kinds)(self.address(name))
        callable_.module = self  # type: ignore[attr-defined]  # the code must not go before the callable
        return callable_


@cache
def _engine_context() -> Any:
    """The context of the empty modules that engines are made from. It is never disposed: garbage collection of a cycle
    may reach an engine's context before the engine, whose end then reads freed memory."""
    return llvm.create_context()


def engine_of(*objects: bytes) -> Any:
    """An execution engine that holds these object files."""
    for data in objects:
        if not data.startswith(_OBJECT_MAGIC):  # the loader would end the process
            raise CompileError("cannot load the object: these bytes are no object file")
    machine = target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("", _engine_context()), machine)
    try:
        for data in objects:
            engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
    except RuntimeError as error:
        raise CompileError(f"cannot load the object: {error}") from error
    return engine
