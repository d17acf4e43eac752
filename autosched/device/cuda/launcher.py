"""One launch with everything about it fixed, issued through the driver's C interface: what is left of a call is that
one function of the driver. Standard library only."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

from autosched.device.cuda.job import Call, Mapped, Pointer, Value

_CLUSTER = 4
"""`CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`."""
Failed = Callable[[int, str], Exception]
"""The error of a status of the driver, with what was being done."""


class Places(Protocol):
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
    for name, count in (("cuLaunchKernelEx", 4), ("cuTensorMapReplaceAddress", 2), ("cuCtxGetCurrent", 1)):
        function = getattr(found, name, None)
        if function is not None:  # drivers before CUDA 12 have no tensor maps
            function.argtypes, function.restype = [ctypes.c_void_p] * count, ctypes.c_int
    return found


class Launcher:
    """A launch of `function` with fixed arguments on a fixed stream. Calling it issues it, and waits for nothing;
    several threads may call it, each with the card's context current. Raises what `failed` makes of the status."""

    def __init__(
        self, function: int, call: Call, addresses: Mapping[str, int], maps: Places, stream: int, failed: Failed
    ) -> None:
        self.kernel, self._failed, self._function = call.kernel, failed, function
        self._values = (ctypes.c_uint64 * max(1, len(call.arguments)))()
        places: list[int] = []
        begin = ctypes.addressof(self._values)
        for number, argument in enumerate(call.arguments):
            match argument:
                case Pointer(name):
                    self._values[number] = addresses[name]
                case Value(data):
                    self._values[number] = int.from_bytes(data, "little")
                case Mapped(name):
                    places.append(maps.at(name, addresses[maps.buffer(name)]))
                    continue
            places.append(begin + 8 * number)
        self._pointers = (ctypes.c_void_p * max(1, len(places)))(*places)
        self._maps = maps  # which own the memory of tensor maps
        self._config = _Config(call.grid, call.block, call.shared_bytes, stream)
        if call.cluster != (1, 1, 1):
            self._attribute = _Attribute(_CLUSTER, 0, call.cluster)
            self._config.attributes, self._config.count = ctypes.addressof(self._attribute), 1
        self._launch: Any = library().cuLaunchKernelEx
        self._at = ctypes.addressof(self._config), function, ctypes.addressof(self._pointers), None

    def __call__(self) -> None:
        if status := self._launch(*self._at):
            raise self._failed(status, f"launching {self.kernel}")
