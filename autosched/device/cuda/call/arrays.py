"""Arguments of a CUDA kernel: numpy arrays, which are copied there and back, and arrays that are on the GPU already,
which are used where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from autosched.errors import UsageError
from autosched.ir.arguments import refuse_unfit
from autosched.ir.nodes import Tensor

ALIGNMENT = 16
"""Of an array's address, in bytes: the widest copy of one thread, and what tensor maps ask for."""


@dataclass(frozen=True)
class Argument:
    """A checked array. `address` is on the GPU, or None for one in `host` memory; `size` in bytes."""

    name: str
    size: int
    address: int | None
    host: Any = None


@dataclass(frozen=True)
class OnCard:
    """An array on a GPU as its library describes it: `kind` is how messages name its element type, `fits` whether that
    is the tensor's; strides in bytes, None for a row-major array."""

    kind: str
    fits: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    address: int
    read_only: bool
    ordinal: int | None


def size_of(tensor: Tensor) -> int:
    """Bytes of an array of the tensor."""
    return prod(tensor.extents) * tensor.dtype.bytes


def in_host(tensor: Tensor, array: Any, written: bool) -> Argument:
    """A numpy array as an argument. UsageError where its type, shape or layout is another."""
    refuse_unfit(tensor, array, written, "neither a numpy array nor on the GPU")
    return Argument(tensor.name, array.nbytes, None, array)


def on_card(tensor: Tensor, said: OnCard, written: bool, ordinal: int) -> Argument:
    """An array on the GPU number `ordinal` as an argument. UsageError where its type, shape, layout or device is
    another, where it does not lie on `ALIGNMENT`, or where it is written and must not be."""
    name, storage = tensor.name, np.dtype(tensor.dtype.numpy)
    if not said.fits or said.shape != tensor.extents:
        raise UsageError(
            f"{name} is {said.kind}{list(said.shape)}", hint=f"the kernel takes {storage}{list(tensor.extents)}"
        )
    if said.strides is not None and not row_major(said.shape, said.strides, storage.itemsize):
        raise UsageError(f"{name} is not contiguous", hint="pass x.contiguous() of PyTorch, ascontiguousarray of CuPy")
    if said.ordinal is None:
        hint = "pass a numpy array, or one on the GPU"
        raise UsageError(f"{name} is not in the memory of a CUDA device", hint=hint)
    if said.ordinal != ordinal:
        hint = f"move it there, as x.to('cuda:{ordinal}') in PyTorch"
        raise UsageError(f"{name} is on CUDA device {said.ordinal}, and the kernel runs on device {ordinal}", hint=hint)
    if said.address % ALIGNMENT:
        where = f"{name} begins at {said.address:#x}, which is no multiple of {ALIGNMENT} bytes"
        raise UsageError(where, hint="pass a copy, or a whole array")
    if written and said.read_only:
        raise UsageError(f"{name} is written, and the array is read-only")
    return Argument(name, size_of(tensor), said.address)


def row_major(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    """Whether elements lie in order without gaps; the stride of a dimension of one element does not matter."""
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and stride != size:
            return False
        size *= n
    return True


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
