"""Object files to machine code in this process, through LLVM's linker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import llvmlite.binding as llvm

from autosched.machine.host import host_features

_LIBRARY = "loaded"
_NOTHING: Mapping[str, int] = MappingProxyType({})


@cache
def _ask() -> None:
    """Ask the system for the registers that this CPU's features need."""
    host_features()


class Loaded:
    """Machine code of object files, linked together; it lives as long as this object.

    Symbols they lack are those of `imports` (their addresses), then the process's (`memcpy`, `expf`). LLVM has to be
    ready (`native.start`). RuntimeError where bytes are no object file.

    The linker (JITLink) puts an object's code and constants side by side, within reach of each other.
    """

    def __init__(self, *objects: bytes, imports: Mapping[str, int] = _NOTHING) -> None:
        _ask()
        # One each: a linker that is shared keeps something of every library it ever had.
        self._jit: Any = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
        library = llvm.JITLibraryBuilder().add_current_process()
        for name, address in imports.items():
            library.import_symbol(name, address)
        for data in objects:
            library.add_object_img(data)
        self._library: Any = library.link(self._jit, _LIBRARY)
        self._found: dict[str, Any] = {}

    def address(self, symbol: str) -> int:
        """Where a function is: LookupError where there is none of that name, RuntimeError where the code lacks a symbol
        that nothing has."""
        if symbol not in self._found:
            try:
                self._found[symbol] = self._jit.lookup(_LIBRARY, symbol)
            except RuntimeError as error:
                if f"[ {symbol} ]" in str(error):
                    raise LookupError(f"the object code has no function {symbol}") from error
                raise
        return int(self._found[symbol][symbol])
