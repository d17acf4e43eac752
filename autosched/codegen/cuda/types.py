"""How the language's dtypes look in CUDA C++: aliases of our own for what is stored, C's types for what is computed.

Small floats are stored as their bits under their own name (`f16` is an alias of `uint16_t`) and computed as float.
"""

from __future__ import annotations

from autosched.codegen.c_like.ctypes import storage_type
from autosched.ir.dtypes import DType

_ALIASES = frozenset(["f16", "bf16", "e4m3", "e5m2"])
"""What the header `types` names; other small floats go by the integer that holds their bits."""
_MAPPED_FLOATS = {"f16": "FLOAT16", "bf16": "BFLOAT16", "tf32": "FLOAT32", "f32": "FLOAT32", "f64": "FLOAT64"}


def element_type(dtype: DType) -> str:
    """The C++ type of an element in memory.

    >>> from autosched.ir.dtypes import DTYPES
    >>> element_type(DTYPES["bf16"]), element_type(DTYPES["s8"]), element_type(DTYPES["f32"])
    ('bf16', 'int8_t', 'float')
    """
    return dtype.name if dtype.name in _ALIASES else storage_type(dtype)


def map_type(dtype: DType) -> str:
    """The end of the driver's name for what a tensor map holds: it only copies, and bytes are bytes.

    >>> from autosched.ir.dtypes import DTYPES
    >>> map_type(DTYPES["bf16"]), map_type(DTYPES["e4m3"]), map_type(DTYPES["s16"]), map_type(DTYPES["s32"])
    ('BFLOAT16', 'UINT8', 'UINT16', 'INT32')
    """
    sign = "" if dtype.kind == "int" and dtype.bits >= 32 else "U"
    return _MAPPED_FLOATS.get(dtype.name, f"{sign}INT{8 * dtype.bytes}")
