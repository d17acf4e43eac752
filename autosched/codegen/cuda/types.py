"""How the language's dtypes look in CUDA C++: aliases of our own for what is stored, C's types for what is computed.

Small floats are stored as their bits under their own name (`f16` is an alias of `uint16_t`) and computed as float.
"""

from __future__ import annotations

from autosched.codegen.c.ctypes import compute_type, stored_as_bits
from autosched.ir.dtypes import DType


def element_type(dtype: DType) -> str:
    """The C++ type of an element in memory.

    >>> from autosched.ir.dtypes import DTYPES
    >>> element_type(DTYPES["bf16"]), element_type(DTYPES["s8"]), element_type(DTYPES["f32"])
    ('bf16', 'int8_t', 'float')
    """
    return dtype.name if stored_as_bits(dtype) else compute_type(dtype)
