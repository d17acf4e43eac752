"""Object bytes to loaded machine code, and its functions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from autosched.codegen import workarounds
from autosched.codegen.llvm.machine.compile import initialise
from autosched.codegen.llvm.machine.errors import LlvmCompileError
from autosched.escape import llvm_text
from autosched.machine.object_loader import Loaded

_PROVIDED: dict[str, int] = {}


def provide(name: str, address: int) -> None:
    """Make a function known to all code that is loaded from now on."""
    _PROVIDED[name] = address


@workarounds.JIT_LINK
def _linked(objects: tuple[bytes, ...]) -> Loaded:
    return Loaded(*objects, imports=_PROVIDED)


class Module:
    """Loaded machine code of these object files. It lives as long as this object or one of its functions does."""

    def __init__(self, *objects: bytes) -> None:
        initialise()
        self.objects = objects
        try:
            self._loaded = _linked(objects)
        except RuntimeError as error:
            raise LlvmCompileError(f"cannot load the object: {error}") from error

    def address(self, name: str) -> int:
        """The address of an exported function. LlvmCompileError where the object exports no such name, or calls a
        function that this process does not have."""
        try:
            return self._loaded.address(llvm_text(name))
        except LookupError as error:
            raise LlvmCompileError(f"the module has no function {name!r}") from error
        except RuntimeError as error:
            raise LlvmCompileError(f"cannot load the object: {error}") from error

    def function(self, name: str, arguments: Sequence[Any] | int = ()) -> Any:
        """A ctypes callable returning nothing; `arguments` are ctypes types, or a number of pointers."""
        kinds = [ctypes.c_void_p] * arguments if isinstance(arguments, int) else list(arguments)
        callable_ = ctypes.CFUNCTYPE(None, *kinds)(self.address(name))
        callable_.module = self  # type: ignore[attr-defined]  # the code must not go before the callable
        return callable_
