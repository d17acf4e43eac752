"""One launch with everything about it fixed, issued through the driver's C interface: what is left of a call is that
one function of the driver. Standard library only."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Protocol

from autosched.device.cuda.launch_job import LaunchCall, Mapped, Pointer, Value

_CLUSTER = 4
"""`CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`."""
Failed = Callable[[int, str], Exception]
"""The error of a status of the driver, with what was being done."""


class TensorMapAddresses(Protocol):
    """Where the tensor map `name` of a buffer at `address` lies in this process."""

    def at(self, name: str, address: int) -> int: ...

    def buffer(self, name: str) -> str: ...


class _Config(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    ]


class _Attribute(ctypes.Structure):
    """`CUlaunchAttribute`, whose value is a cluster's shape."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("shape", ctypes.c_uint * 3), ("rest", ctypes.c_byte * 52)]


@cache
def library() -> ctypes.CDLL:
    """The driver's library, with the signatures that are used here. OSError where there is none."""
    found = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    for name, count in (("cuTensorMapReplaceAddress", 2), ("cuCtxGetCurrent", 1)):
        function = getattr(found, name, None)
        if function is not None:  # drivers before CUDA 12 have no tensor maps
            function.argtypes, function.restype = [ctypes.c_void_p] * count, ctypes.c_int
    return found


class Launcher:
    """A launch with everything fixed. Calling it issues it, and waits for nothing; `run` does the same and answers the
    driver's status. Several threads may call it, each with the GPU's context current. Raises CudaError."""

    __slots__ = ("_held", "_template", "run")

    def __init__(self, template: Template, held: tuple[Any, ...], places: tuple[int, int]) -> None:
        self._template, self._held = template, held  # memory that the driver reads in each launch
        config, pointers = (ctypes.c_void_p(place) for place in places)
        self.run = partial(template.launch, config, template.function, pointers, None)

    def __call__(self) -> None:
        if status := self.run():
            raise self.error(status)

    def error(self, status: int) -> Exception:
        """What a status of `run` means."""
        return self._template.failed(status, f"launching {self._template.call.kernel}")


class Template:
    """A launch of a function, by its handle, whose addresses and stream are yet to come; `stream` is the one where none
    is named, `failed` makes an error of a status."""

    def __init__(self, function: int, call: LaunchCall, stream: int, failed: Failed) -> None:
        self.function, self.call, self.stream, self.failed = ctypes.c_void_p(function), call, stream, failed
        self.launch = library().cuLaunchKernelEx
        count = max(1, len(call.arguments))
        self._values, self._pointers = ctypes.c_uint64 * count, ctypes.c_void_p * count
        config = _Config(call.grid, call.block, call.shared_bytes, 0)
        if call.cluster != (1, 1, 1):
            self._attribute = _Attribute(_CLUSTER, 0, call.cluster)
            config.attributes, config.count = ctypes.addressof(self._attribute), 1
        self._config = bytes(config)

    def at(self, addresses: Mapping[str, int], maps: TensorMapAddresses, stream: int | None = None) -> Launcher:
        """The launch on these addresses. Scalars are in the call."""
        values, pointers = self._values(), self._pointers()
        begin = ctypes.addressof(values)
        for number, argument in enumerate(self.call.arguments):
            pointers[number] = begin + 8 * number
            match argument:
                case Pointer(name):
                    values[number] = addresses[name]
                case Value(data):
                    values[number] = int.from_bytes(data, "little")
                case Mapped(name):
                    pointers[number] = maps.at(name, addresses[maps.buffer(name)])
        config = _Config.from_buffer_copy(self._config)
        config.stream = self.stream if stream is None else stream
        places = ctypes.addressof(config), ctypes.addressof(pointers)
        return Launcher(self, (values, pointers, config, maps), places)
