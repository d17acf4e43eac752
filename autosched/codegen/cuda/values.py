"""Value expressions as CUDA C++: those of exported C, but for small floats that move as their bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from autosched.codegen.c_like.ctypes import stored_as_bits
from autosched.codegen.c_like.values import CLikeValuePrinter
from autosched.ir.oracle.numerics import store
from autosched.ir.value import Literal, Read, Select, Value

_MOVED = Read | Literal | Select
"""Values whose bits are at hand."""


@dataclass(frozen=True)
class CudaValues(CLikeValuePrinter):
    """As `CLikeValuePrinter`; a choice between elements is a choice between their bits."""

    index_type: ClassVar[str] = "int64_t"

    def stored(self, value: Value) -> str:
        if stored_as_bits(value.dtype):
            match value:
                case Literal(number, dtype):
                    bits = store(np.asarray(number, np.float64), dtype).reshape(1).view(f"u{dtype.bytes}")[0]
                    return f"{int(bits):#x}" if bits else "0"
                case Select(condition, then, other, _) if isinstance(then, _MOVED) and isinstance(other, _MOVED):
                    return f"{self._condition(condition, 1)} ? {self._side(then)} : {self._side(other)}"
        return super().stored(value)

    def _side(self, value: Value) -> str:
        text = self.stored(value)
        return f"({text})" if "?" in text else text
