"""Arguments of a CUDA kernel: numpy arrays, which are copied there and back, and arrays that are on the card already
(anything with `__cuda_array_interface__`: PyTorch, CuPy, Numba), which are used where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autosched.errors import UsageError
from autosched.ir.program import Tensor

ALIGNMENT = 16
"""Of an array's address, in bytes: the widest copy of one thread, and what tensor maps ask for."""


@dataclass(frozen=True)
class Argument:
    """A checked array. `address` is on the card, or None for one in `host` memory; `size` in bytes."""

    name: str
    size: int
    address: int | None
    host: Any = None


def checked(tensor: Tensor, array: Any, written: bool) -> Argument:
    """The array as an argument. UsageError where its type, shape or layout is another, or where it does not lie on
    `ALIGNMENT`."""
    name = tensor.name
    described = getattr(array, "__cuda_array_interface__", None)
    if described is not None:
        return _on_card(tensor, described, written)
    expected = f"{np.dtype(tensor.dtype.numpy)}{list(tensor.extents)}"
    if not isinstance(array, np.ndarray):
        kind = type(array).__name__
        raise UsageError(f"{name} is a {kind}, neither a numpy array nor on the card", hint=f"pass {expected}")
    if array.dtype != np.dtype(tensor.dtype.numpy) or array.shape != tensor.extents:
        raise UsageError(f"{name} is {array.dtype}{list(array.shape)}", hint=f"the kernel takes {expected}")
    if not array.flags.c_contiguous:
        raise UsageError(f"{name} is not contiguous", hint="pass np.ascontiguousarray(…)")
    if written and not array.flags.writeable:
        raise UsageError(f"{name} is written, and the array is read-only")
    return Argument(name, array.nbytes, None, array)


def _on_card(tensor: Tensor, described: Mapping[str, Any], written: bool) -> Argument:
    name, storage = tensor.name, np.dtype(tensor.dtype.numpy)
    shape, kind = tuple(described["shape"]), str(described["typestr"])
    # Small floats have no letter of their own there; their size is all that can be compared.
    same = np.dtype(kind).itemsize == storage.itemsize and (storage.kind == "V" or kind[1] in (storage.kind, "V"))
    if not same or shape != tensor.extents:
        raise UsageError(f"{name} is {kind}{list(shape)}", hint=f"the kernel takes {storage}{list(tensor.extents)}")
    strides = described.get("strides")
    if strides is not None and tuple(strides) != contiguous(shape, storage.itemsize):
        raise UsageError(f"{name} is not contiguous", hint="pass x.contiguous() of PyTorch, ascontiguousarray of CuPy")
    address, read_only = described["data"]
    if address % ALIGNMENT:
        where = f"{name} begins at {address:#x}, which is no multiple of {ALIGNMENT} bytes"
        raise UsageError(where, hint="pass a copy, or a whole array")
    if written and read_only:
        raise UsageError(f"{name} is written, and the array is read-only")
    return Argument(name, int(np.prod(shape, dtype=np.int64)) * storage.itemsize, int(address))


def contiguous(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Strides of a row-major array in bytes."""
    strides = []
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))


def refuse_overlap(outputs: tuple[str, ...], arguments: Mapping[str, Argument]) -> None:
    """UsageError where an output shares memory with another array: kernels rely on its being their own."""
    for output in outputs:
        for name, other in arguments.items():
            if name != output and _overlap(arguments[output], other):
                raise UsageError(f"{output} overlaps {name}", hint="an output needs memory of its own")


def _overlap(a: Argument, b: Argument) -> bool:
    if a.address is None or b.address is None:
        return a.host is not None and b.host is not None and bool(np.may_share_memory(a.host, b.host))
    return a.address < b.address + b.size and b.address < a.address + a.size
