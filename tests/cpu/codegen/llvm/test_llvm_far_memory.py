"""Code is loaded beside its constants, in a process whose free memory near other code is one small hole too."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes
import numpy as np
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load

PAGE, REGION, FLAGS = 4096, 16 << 30, 0x4022  # MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
reserve = lambda size: libc.mmap(None, size, 0, FLAGS, -1, 0)
code = compile_object('''
@table = private unnamed_addr constant [1024 x double] [%s]
define void @f(ptr %%x, ptr %%y) {
  %%i = load i64, ptr %%x
  %%p = getelementptr [1024 x double], ptr @table, i64 0, i64 %%i
  %%v = load double, ptr %%p
  store double %%v, ptr %%y
  ret void
}''' % ", ".join(f"double {n}.0" for n in range(1024)))
region = reserve(REGION)
while reserve(PAGE) > region:  # whatever is free above it
    pass
libc.munmap(region + REGION - (1 << 30), PAGE)  # room for the code, not for the constants
x, y = np.array([7]), np.zeros(1)
load(code).function("f", 2)(x.ctypes.data, y.ctypes.data)
print(y[0])
"""


@pytest.mark.x86
@pytest.mark.skipif(sys.platform != "linux", reason="reserves memory as Linux does")
def test_constants_are_within_reach() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert run.stdout == "7.0\n", run.stderr
