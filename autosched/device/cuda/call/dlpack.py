"""What a DLPack capsule says of an array: https://dmlc.github.io/dlpack/latest/c_api.html. The capsule is not consumed;
the array that made it owns the memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

CUDA = 2
"""`kDLCUDA`."""
KINDS = {0: "i", 1: "u", 2: "f", 4: "V", 5: "c", 6: "b"}
"""numpy's letters for its type codes (4 is bfloat16); floats of 8 bits, which come after, have none."""
_DEFAULT_STREAM = 1


class _Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class Description:
    """`kind` as numpy's letter, `strides` in elements or None for a row-major array."""

    kind: str
    bits: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    address: int
    read_only: bool = False


def description(array: Any) -> Description:
    """Of an array on a CUDA device: its library has the default stream wait for what fills it."""
    capsule = array.__dlpack__(stream=_DEFAULT_STREAM)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    rank = found.ndim
    return Description(
        KINDS.get(found.code, "V"),
        found.bits * found.lanes,
        tuple(found.shape[:rank]),
        tuple(found.strides[:rank]) if found.strides else None,
        (found.data or 0) + found.byte_offset,
    )
