"""Libraries whose arrays lie on a GPU: PyTorch, CuPy, and whatever has `__cuda_array_interface__` or DLPack.

This file imports none of them: an array of theirs brings its library. A `Library` gives the device of an array, the
current stream there, and addresses. A call uses `reader`, the quick check of one parameter; where that fails,
`described` says what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from autosched.codegen.operators import TYPES
from autosched.device.cuda.call.arrays import ALIGNMENT, OnCard, row_major
from autosched.device.cuda.call.dlpack import CUDA, description
from autosched.errors import UsageError
from autosched.ir.nodes import Tensor

FNUZ = {"e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz"}
Reader = Callable[[Any, int], int]
"""The address of an array that fits the parameter exactly and is on the device of that number, else 0."""
Where = Callable[[int], int | None]
"""The device whose memory an address is in."""


@dataclass(frozen=True, slots=True)
class Quick:
    """The shortest way for a call whose arrays are all of one library: the current stream of a device, and the
    addresses of all arrays; None where one differs from its parameter's type, shape or layout. Device and alignment
    follow from an address, and are checked when it is new."""

    stream: Callable[[int], int]
    addresses: Callable[[Sequence[Any]], list[Any] | None]


class Library(Protocol):
    """What a call needs of the library of its arrays."""

    name: str

    def device(self, array: Any) -> int | None:
        """The number of the CUDA device that holds the array; None where none does."""
        ...

    def stream(self, array: Any, ordinal: int) -> int | None:
        """The handle of the current stream for the array; None where any will do."""
        ...

    def quick(self, tensors: Sequence[Tensor], arrays: Sequence[Any]) -> Quick | None:
        """The quick way for these parameters, whose arrays fit; None where the library has none."""
        ...

    def reader(self, tensor: Tensor, written: bool) -> Reader: ...

    def described(self, tensor: Tensor, array: Any) -> OnCard: ...

    def empty(self, tensor: Tensor, ordinal: int) -> Any:
        """A new array on the device. UsageError where the library has none."""
        ...


def library_of(array: Any, where: Where) -> Library | None:
    """The library of an array's type; None for one that is not known to be on a GPU. `where` asks the driver."""
    kind = type(array)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and issubclass(kind, torch.Tensor):
        return Torch(torch)
    if cupy is not None and issubclass(kind, cupy.ndarray):
        return CuPy(cupy)
    if hasattr(array, "__cuda_array_interface__"):
        return Interface(where)
    if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
        return DLPack()
    return None


class Torch:
    """PyTorch's tensors."""

    name = "PyTorch"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # as Triton asks
        self._stream: Callable[[int], int] = quick or (lambda o: int(torch.cuda.current_stream(o).cuda_stream))

    def device(self, array: Any) -> int | None:
        return int(array.get_device()) if array.is_cuda else None

    def stream(self, array: Any, ordinal: int) -> int | None:
        return self._stream(ordinal)

    def quick(self, tensors: Sequence[Tensor], arrays: Sequence[Any]) -> Quick | None:
        check = self._guard(arrays)
        if check is not None:
            count, address_of = len(tensors), self.torch.Tensor.data_ptr

            def guarded(arrays: Sequence[Any]) -> list[Any] | None:
                given = arrays if len(arrays) == count else arrays[:count]  # scalars follow
                return list(map(address_of, given)) if check(*given) else None

            return Quick(self._stream, guarded)
        kind, other = self.torch.Tensor, self.torch.nn.Parameter
        wanted = [(self._dtypes(t)[0], t.extents) for t in tensors]

        def addresses(arrays: Sequence[Any]) -> list[Any] | None:
            found = []
            for array, (dtype, shape) in zip(arrays, wanted, strict=False):  # scalars follow
                own = type(array)
                if (
                    (own is not kind and own is not other)
                    or array.dtype is not dtype
                    or array.shape != shape
                    or not array.is_contiguous()
                ):
                    return None
                found.append(array.data_ptr())
            return found

        return Quick(self._stream, addresses)

    def reader(self, tensor: Tensor, written: bool) -> Reader:
        wanted, shape = self._dtypes(tensor), tensor.extents

        def read(array: Any, ordinal: int) -> int:
            if (
                array.dtype in wanted
                and array.shape == shape
                and array.get_device() == ordinal
                and array.is_cuda
                and array.is_contiguous()
            ):
                address: int = array.data_ptr()
                if not address % ALIGNMENT:
                    return address
            return 0

        return read

    def described(self, tensor: Tensor, array: Any) -> OnCard:
        kind = str(array.dtype).removeprefix("torch.")
        size = array.element_size()
        strides = None if array.is_contiguous() else tuple(size * n for n in array.stride())
        same, device = array.dtype in self._dtypes(tensor), self.device(array)
        return OnCard(kind, same, tuple(array.shape), strides, array.data_ptr(), False, device)

    def _guard(self, arrays: Sequence[Any]) -> Callable[..., bool] | None:
        """A test in one call that tensors have the types, shapes and layouts of these: PyTorch's own guard for compiled
        functions. None where this PyTorch has none, or one that accepts other tensors."""
        torch = self.torch
        try:
            sizes, steps = [list(a.shape) for a in arrays], [list(a.stride()) for a in arrays]
            guards = torch._C._dynamo.guards.TensorGuards
            check: Callable[..., bool] = guards(*arrays, dynamic_dims_sizes=sizes, dynamic_dims_strides=steps).check
            if not check(*arrays):
                return None
            integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
            for number, array in enumerate(arrays):
                size = array.element_size()
                kind = integers[size] if array.dtype is not integers[size] else torch.uint8 if size == 1 else None
                others = [array.unsqueeze(0), *([] if kind is None else [array.view(kind)])]
                if array.numel() > 1:
                    others += [array.as_strided(array.shape, [0] * array.dim()), array[..., :0]]
                if any(check(*arrays[:number], other, *arrays[number + 1 :]) for other in others):
                    return None
        except (AttributeError, RuntimeError, TypeError, KeyError):
            return None
        return check

    def empty(self, tensor: Tensor, ordinal: int) -> Any:
        return self.torch.empty(tensor.extents, dtype=self._dtypes(tensor)[0], device=f"cuda:{ordinal}")

    def _dtypes(self, tensor: Tensor) -> tuple[Any, ...]:
        """PyTorch's types for the elements: its own if it has one, and bytes for what takes a byte."""
        named = TYPES.get(tensor.dtype.name) or FNUZ.get(tensor.dtype.name, "uint8")
        found = getattr(self.torch, named, None)
        return tuple(t for t in (found, self.torch.uint8 if tensor.dtype.bytes == 1 else None) if t is not None)


class CuPy:
    """CuPy's arrays."""

    name = "CuPy"

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self._current = cupy.cuda.get_current_stream

    def device(self, array: Any) -> int | None:
        return int(array.device.id)

    def stream(self, array: Any, ordinal: int) -> int | None:
        return int(self._current(ordinal).ptr)

    def quick(self, tensors: Sequence[Tensor], arrays: Sequence[Any]) -> Quick | None:
        readers, kind = [self.reader(t, False) for t in tensors], self.cupy.ndarray

        def addresses(arrays: Sequence[Any]) -> list[Any] | None:
            found = []
            for array, read in zip(arrays, readers, strict=False):  # scalars follow
                if type(array) is not kind or not (address := read(array, array.data.device_id)):
                    return None
                found.append(address)
            return found

        return Quick(lambda ordinal: int(self._current(ordinal).ptr), addresses)

    def reader(self, tensor: Tensor, written: bool) -> Reader:
        storage, shape = np.dtype(tensor.dtype.numpy), tensor.extents

        def read(array: Any, ordinal: int) -> int:
            data = array.data
            if (
                fits(array.dtype, storage)
                and array.shape == shape
                and data.device_id == ordinal
                and array.flags.c_contiguous
            ):
                address: int = data.ptr
                if not address % ALIGNMENT:
                    return address
            return 0

        return read

    def described(self, tensor: Tensor, array: Any) -> OnCard:
        strides = None if array.flags.c_contiguous else tuple(array.strides)
        same = fits(array.dtype, np.dtype(tensor.dtype.numpy))
        return OnCard(str(array.dtype), same, array.shape, strides, int(array.data.ptr), False, self.device(array))

    def empty(self, tensor: Tensor, ordinal: int) -> Any:
        with self.cupy.cuda.Device(ordinal):
            return self.cupy.empty(tensor.extents, np.dtype(tensor.dtype.numpy))


class Interface:
    """Arrays with `__cuda_array_interface__`."""

    name = "the CUDA array interface"

    def __init__(self, where: Where) -> None:
        self.where = where

    def device(self, array: Any) -> int | None:
        return self.where(int(array.__cuda_array_interface__["data"][0]))

    def stream(self, array: Any, ordinal: int) -> int | None:
        """The stream that the array names, if any; 1 means the default stream in this interface."""
        named = array.__cuda_array_interface__.get("stream")
        return None if named is None else 0 if named == 1 else int(named)

    def quick(self, tensors: Sequence[Tensor], arrays: Sequence[Any]) -> Quick | None:
        return None

    def reader(self, tensor: Tensor, written: bool) -> Reader:
        def read(array: Any, ordinal: int) -> int:
            said = self.described(tensor, array)
            size = np.dtype(tensor.dtype.numpy).itemsize
            right = said.fits and said.shape == tensor.extents and not (written and said.read_only)
            lies = said.strides is None or row_major(said.shape, said.strides, size)
            return said.address if right and lies and said.ordinal == ordinal and not said.address % ALIGNMENT else 0

        return read

    def described(self, tensor: Tensor, array: Any) -> OnCard:
        said = array.__cuda_array_interface__
        kind, strides = str(said["typestr"]), said.get("strides")
        address, read_only = said["data"]
        same = fits(np.dtype(kind), np.dtype(tensor.dtype.numpy))
        strides = None if strides is None else tuple(strides)
        return OnCard(kind, same, tuple(said["shape"]), strides, int(address), bool(read_only), self.where(address))

    def empty(self, tensor: Tensor, ordinal: int) -> Any:
        hint = "with arrays on the GPU, pass one for each output too"
        raise UsageError(f"no array for {tensor.name}", hint=hint)


class DLPack(Interface):
    """Arrays with DLPack alone: their library makes the default stream wait for its work."""

    name = "DLPack"

    def __init__(self) -> None:
        super().__init__(lambda address: None)

    def device(self, array: Any) -> int | None:
        kind, ordinal = array.__dlpack_device__()
        return int(ordinal) if int(kind) == CUDA else None

    def stream(self, array: Any, ordinal: int) -> int | None:
        return 0

    def described(self, tensor: Tensor, array: Any) -> OnCard:
        found = description(array)
        kind, storage = found.kind, np.dtype(tensor.dtype.numpy)
        same = found.bits == 8 * storage.itemsize and (storage.kind == "V" or kind in (storage.kind, "V"))
        strides = None if found.strides is None else tuple(storage.itemsize * n for n in found.strides)
        return OnCard(
            f"{kind}{found.bits}", same, found.shape, strides, found.address, found.read_only, self.device(array)
        )


def fits(given: Any, storage: Any) -> bool:
    """Whether elements of a type are the wanted ones. Of small floats, which have no kind of their own in numpy, only
    the size can be compared."""
    return bool(
        given == storage
        or (given.itemsize == storage.itemsize and (storage.kind == "V" or given.kind in (storage.kind, "V")))
    )
