"""How the language's dtypes are held in LLVM values and in memory.

| dtype | value | memory |
|---|---|---|
| integers | `i1 i4 i8 i16 i32 i64` | the same, `i8` below a byte (low bits, the rest zero) |
| `f16 f32 f64` | `half float double` | the same |
| `tf32` | `float`, 13 low fraction bits zero | `float` |
| `bf16`, floats of 8 bits | their bits: `i16`, `i8` | the same |
| floats of 4 bits | their bits: `i4` | `i8` |

`bf16` is bits because its rounding is done in integers (`convert.py`). Intrinsics see the type they declare through a
bitcast.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache

import numpy as np

from autosched.ir.dtypes import DType
from autosched.ir.oracle.numerics import wrap_int

_FLOAT = {"f16": "half", "f32": "float", "f64": "double", "tf32": "float"}


@dataclass(frozen=True, slots=True)
class Val:
    """An SSA value or constant of a dtype: `lanes` is 1 for a scalar, which stands for itself in every lane."""

    name: str
    dtype: DType
    lanes: int = 1

    @property
    def type(self) -> str:
        return typed(scalar(self.dtype), self.lanes)

    @property
    def text(self) -> str:
        """Type and name, as an instruction's first operand is written."""
        return f"{self.type} {self.name}"


@cache
def typed(element: str, lanes: int) -> str:
    """`float` or `<16 x float>`."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def suffix(element: str, lanes: int) -> str:
    """The mangled type in an overloaded intrinsic's name: `v16f32`."""
    short = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(element, element)
    return short if lanes == 1 else f"v{lanes}{short}"


def scalar(dtype: DType) -> str:
    """The LLVM type of one value."""
    return _FLOAT.get(dtype.name) or f"i{dtype.bits}"


def memory(dtype: DType) -> str:
    """The LLVM type of one element in memory."""
    return _FLOAT.get(dtype.name, f"i{max(8, dtype.bits)}")


def constant(value: int | float, dtype: DType) -> str:
    """The text of a literal, wrapped or rounded once into `dtype`.

    >>> from autosched.ir.dtypes import dtype
    >>> constant(300, dtype("u8")), constant(0.5, dtype("f32")), constant(1, dtype("bf16"))
    ('44', '0x3FE0000000000000', '16256')
    """
    if not dtype.is_float:
        return str(wrap_int(int(value), dtype)) if dtype.kind == "int" else str(int(value) & ((1 << dtype.bits) - 1))
    from autosched.ir.oracle.numerics import round_float, store

    stored = np.asarray(store(round_float(np.asarray(value, np.float64), dtype), dtype))
    if dtype.name in ("f32", "tf32", "f64"):
        return double_text(float(stored))
    bits = int(stored.view(np.uint16 if dtype.bits == 16 else np.uint8))
    return f"0xH{bits:04X}" if dtype.name == "f16" else str(bits)


def double_text(value: float) -> str:
    """LLVM's spelling of a `float` or `double` constant: the bits of the double in hexadecimal."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat_text(element: str, text: str, lanes: int) -> str:
    """A constant vector with `text` in every lane."""
    return f"splat ({element} {text})" if lanes > 1 else text


def vector_text(element: str, texts: list[str]) -> str:
    """A constant vector."""
    return "<" + ", ".join(f"{element} {t}" for t in texts) + ">"
