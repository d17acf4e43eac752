"""oneDNN's C interface (version 3) through ctypes: no headers, no compiler. Found in `AUTOSCHED_ONEDNN`, in the wheel
`onednn-cpu-gomp`, or as the system's `libdnnl`. Numbers are those of `dnnl_types.h`."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.task import Array, UnavailableError

DTYPES = {"f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6}
ANY_FORMAT, INFERENCE, CPU, IN_ORDER = 1, 96, 1, 1
SRC, SRC_1, DST, WEIGHTS, BIAS, SCALE, SHIFT = 1, 2, 17, 33, 41, 51, 52
ATTR_SCALES, ATTR_POST_OP = 4096, 32768
CONVOLUTION_DIRECT, SOFTMAX_ACCURATE, BINARY_ADD = 0x1, 0x30000, 0x1FFF0
ELTWISE = {"relu": 0x20, "gelu_tanh": 0x2B, "gelu": 0x31}
USE_SCALE, USE_SHIFT = 2, 4
QUERY_WEIGHTS, QUERY_IMPLEMENTATION = 131, 8
_ALIGNMENT = 64


class _Argument(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]


class OneDnn:
    """The library with one engine and one stream. Objects it makes live as long as the process."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._library.dnnl_version.restype = ctypes.POINTER(_Version)
        found = self._library.dnnl_version().contents
        self.version = f"{found.major}.{found.minor}.{found.patch}"
        if found.major != 3:
            raise UnavailableError(f"oneDNN {self.version} at {path}: only version 3 is known")
        self._library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        self._library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self.engine = self._made("dnnl_engine_create", ctypes.c_int(CPU), ctypes.c_size_t(0))
        self.stream = self._made("dnnl_stream_create", self.engine, ctypes.c_uint(IN_ORDER))
        self._kept: list[Any] = []

    def desc(self, array: Array) -> ctypes.c_void_p:
        """An array's shape, type and strides."""
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        kind = DTYPES[_name(array)]
        return self._made("dnnl_memory_desc_create_with_strides", array.ndim, dims, kind, strides)

    def any(self, array: Array) -> ctypes.c_void_p:
        """The array's shape and type, in whatever format suits the primitive."""
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        return self._made("dnnl_memory_desc_create_with_tag", array.ndim, dims, DTYPES[_name(array)], ANY_FORMAT)

    def attributes(
        self, eltwise: str = "", add: ctypes.c_void_p | None = None, scales: Mapping[int, int] | None = None
    ) -> ctypes.c_void_p:
        """What comes after the primitive: an addition of another tensor, then an activation; and masks of scales."""
        made = self._made("dnnl_primitive_attr_create")
        operations = self._made("dnnl_post_ops_create")
        if add is not None:
            self._call("dnnl_post_ops_append_binary", operations, BINARY_ADD, add)
        if eltwise:
            none = ctypes.c_float(0.0)
            self._call("dnnl_post_ops_append_eltwise", operations, ELTWISE[eltwise], none, none)
        self._call("dnnl_primitive_attr_set_post_ops", made, operations)
        for argument, mask in (scales or {}).items():
            self._call("dnnl_primitive_attr_set_scales_mask", made, argument, mask)
        return made

    def primitive_desc(self, create: str, *arguments: Any) -> ctypes.c_void_p:
        """`dnnl_<create>_primitive_desc_create`; UnavailableError where oneDNN has no such implementation."""
        return self._made(f"dnnl_{create}_primitive_desc_create", self.engine, *arguments)

    def implementation(self, primitive_desc: ctypes.c_void_p) -> str:
        text = ctypes.c_char_p()
        self._call("dnnl_primitive_desc_query", primitive_desc, QUERY_IMPLEMENTATION, 0, ctypes.byref(text))
        return (text.value or b"").decode()

    def wanted(self, primitive_desc: ctypes.c_void_p, which: int) -> ctypes.c_void_p:
        """The format that the primitive chose."""
        return ctypes.c_void_p(self._library.dnnl_primitive_desc_query_md(primitive_desc, which, 0))

    def memory(self, desc: ctypes.c_void_p, array: Array | None = None) -> ctypes.c_void_p:
        """The array's own memory, or new memory, aligned to a cache line."""
        if array is None:
            raw = np.zeros(self._library.dnnl_memory_desc_get_size(desc) + _ALIGNMENT, np.uint8)
            array = raw[-raw.ctypes.data % _ALIGNMENT :]
        self._kept.append(array)
        handle = ctypes.c_void_p(array.ctypes.data)
        return self._made("dnnl_memory_create", desc, self.engine, handle)

    def reorder(
        self, source: tuple[ctypes.c_void_p, ctypes.c_void_p], target: tuple[ctypes.c_void_p, ctypes.c_void_p]
    ) -> Callable[[], None]:
        """The call that converts one (desc, memory) into another's format."""
        made = self._made(
            "dnnl_reorder_primitive_desc_create", source[0], self.engine, target[0], self.engine, None
        )
        return self.call(made, {SRC: source[1], DST: target[1]})

    def call(self, primitive_desc: ctypes.c_void_p, memories: Mapping[int, ctypes.c_void_p]) -> Callable[[], None]:
        """Execute and wait; the arguments are laid out once."""
        primitive = self._made("dnnl_primitive_create", primitive_desc)
        listed = (_Argument * len(memories))(*(_Argument(a, m.value) for a, m in memories.items()))
        execute, wait = self._library.dnnl_primitive_execute, self._library.dnnl_stream_wait
        stream, count = self.stream, ctypes.c_int(len(memories))
        self._kept.append(memories)

        def run() -> None:
            if execute(primitive, stream, count, listed) or wait(stream):
                raise RuntimeError("oneDNN failed to execute")

        return run

    def _made(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(function, ctypes.byref(made), *arguments)
        return made

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise UnavailableError(f"{function} answers {status}" + (" (not implemented)" if status == 3 else ""))


@cache
def library() -> OneDnn:
    """The library of this process. UnavailableError where there is none."""
    wheel = Path(sys.prefix) / "lib" / "libdnnl.so.3"
    for path in _paths(os.environ.get("AUTOSCHED_ONEDNN"), str(wheel) if wheel.exists() else None):
        try:
            return OneDnn(path)
        except OSError as error:
            raise UnavailableError(f"{path}: {error}") from None
    raise UnavailableError("no libdnnl: pip install onednn-cpu-gomp==2023.2.0, or name one in AUTOSCHED_ONEDNN")


def _paths(*first: str | None) -> Sequence[str]:
    return [p for p in (*first, ctypes.util.find_library("dnnl")) if p]


def _name(array: Array) -> str:
    kind = array.dtype
    plain = f"{'s' if kind.kind == 'i' else kind.kind}{8 * kind.itemsize}"
    return "bf16" if kind.name == "bfloat16" else plain
