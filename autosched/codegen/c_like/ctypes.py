"""How the language's dtypes look in C: storage, arithmetic, and vectors of them.

Small floats compute in `float` and round after each operation; they are stored as their bits in an unsigned integer
(tf32 in a float), so that the code needs no compiler support for them. u4, s4, b1 and e2m1 are stored one to a byte.
"""

from __future__ import annotations

from math import inf, isnan

import numpy as np

from autosched.ir.dtypes import DType
from autosched.ir.oracle import numerics


def stored_as_bits(dtype: DType) -> bool:
    """Whether it is a float whose storage is an integer of its bits."""
    return dtype.small_float and not dtype.padding


def storage_type(dtype: DType) -> str:
    """The C type of an element in memory.

    >>> from autosched.ir.dtypes import DTYPES
    >>> storage_type(DTYPES["bf16"]), storage_type(DTYPES["s4"]), storage_type(DTYPES["f32"])
    ('uint16_t', 'int8_t', 'float')
    """
    if stored_as_bits(dtype):
        return f"uint{8 * dtype.bytes}_t"
    return compute_type(dtype)


def compute_type(dtype: DType) -> str:
    """The C type that arithmetic on `dtype` is done in."""
    if dtype.kind == "bool":
        return "bool"
    if dtype.is_float:
        return "double" if dtype.name == "f64" else "float"
    return f"{'u' if dtype.kind == 'uint' else ''}int{max(8, dtype.bits)}_t"


def vector_name(dtype: DType, elements: int) -> str:
    """The name of the vector of `elements`, as `f32x16`."""
    return f"{dtype.name}x{elements}"


def vector_typedef(dtype: DType, elements: int) -> str:
    """Its definition (GCC and Clang): readable and writable element by element, and castable to machine registers."""
    size = dtype.bytes * elements
    return f"typedef {storage_type(dtype)} {vector_name(dtype, elements)} __attribute__((vector_size({size})));"


def literal(value: int | float, dtype: DType) -> str:
    """`value` as a C constant of the compute type."""
    if dtype.is_float:
        suffix = "" if dtype.name == "f64" else "f"
        number = float(numerics.round_float(np.float64(value), dtype))
        if isnan(number):
            return "NAN"
        if abs(number) == inf:
            return "INFINITY" if number > 0 else "-INFINITY"
        text = repr(number) if dtype.name == "f64" else str(np.float32(number))
        return text + ("" if any(c in text for c in ".e") else ".0") + suffix
    number = int(value)
    if dtype.bits == 64:
        if number == -(2**63):
            return "INT64_MIN"
        return f"{'UINT64_C' if dtype.kind == 'uint' else 'INT64_C'}({number})"
    if dtype.bits == 32:
        return "INT32_MIN" if number == -(2**31) else f"{number}{'u' if dtype.kind == 'uint' else ''}"
    return str(number)
