"""The text that compares outputs on a card, compiled for the host: its threads run one after the other."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from autosched.codegen.cuda.emulation.build import compiler
from autosched.device.cuda.comparing import TEXT
from autosched.errors import MissingError

_BEFORE = """
#include <cstring>
#define __device__ static
#define __global__
struct Dim { unsigned x; };
static Dim gridDim, blockDim, blockIdx, threadIdx;
template <class T> void atomicAdd(T *to, T v) { *to += v; }
template <class T> void atomicMax(T *to, T v) { if (v > *to) *to = v; }
template <class T> void atomicMin(T *to, T v) { if (v < *to) *to = v; }
static unsigned long long __double_as_longlong(double v) { unsigned long long b; memcpy(&b, &v, 8); return b; }
"""
_AFTER = """
extern "C" void run(const void *got, const u64 *places, const void *want, const double *tolerances, const double *table,
                    u64 *found, u64 count, double room, int kind, int size, int how, int pass) {
    gridDim.x = 3, blockDim.x = 4;
    for (blockIdx.x = 0; blockIdx.x < 3; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < 4; ++threadIdx.x)
            compare(got, places, want, tolerances, table, found, count, room, kind, size, how, pass);
}
"""


@cache
def host_compare() -> Callable[..., None]:
    """The kernel `compare` of a `HostCard`; skips the test where there is no C++ compiler."""
    try:
        command = compiler()
    except MissingError as missing:
        pytest.skip(missing.message)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "compare.cpp", Path(folder) / "compare.so"
        source.write_text(_BEFORE + TEXT + _AFTER)
        subprocess.run([*command, "-O1", "-shared", "-fPIC", str(source), "-o", str(made)], check=True)
        function = ctypes.CDLL(str(made)).run
    function.restype = None
    kinds: list[Any] = [ctypes.c_uint64, ctypes.c_double, *[ctypes.c_int] * 4]

    def run(*values: Any) -> None:
        pointers, scalars = values[:6], values[6:]
        function(*map(ctypes.c_void_p, pointers), *(k.from_buffer_copy(v) for k, v in zip(kinds, scalars, strict=True)))

    return run
