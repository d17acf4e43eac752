"""Exported C, built with the machine's compiler and called through ctypes; for tests."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autosched.codegen.c import CSource, print_c
from autosched.codegen.tree.kernel import Buffer, Function, Kernel
from autosched.ir.dtypes import DType
from autosched.machine.host import host_features

COMPILER = shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no gcc or clang on this machine")
WARNINGS = ("-Wall", "-Wextra", "-Werror")
WIDE = () if "avx512f" in host_features() else ("-Wno-psabi",)
"""GCC says of vectors wider than the machine's that calls would pass them another way; only the file calls such."""


MANY = 3
"""Sources of one command in this process from which on the compiler's own header, which takes longer than most of them,
is read beforehand: to read it so takes as long as two of them do."""
_built: Counter[tuple[str, ...]] = Counter()
INCLUDED = {"immintrin.h": r"\b_mm\d*_", "stdlib.h": r"\b(malloc|calloc|aligned_alloc|free|abort)\("}
"""What that header brings, and what of a source needs it: sources must still ask for it themselves."""


@cache
def _read_beforehand(command: tuple[str, ...]) -> tuple[str, ...]:
    """The option with which GCC starts from what it has read of `immintrin.h`, with the same options."""
    assert COMPILER is not None
    if "gcc" not in Path(COMPILER).name or platform.machine() != "x86_64":
        return ()
    folder = Path(_folder().name) / str(len(list(Path(_folder().name).iterdir())))
    folder.mkdir()
    (folder / "before.h").write_text("#include <immintrin.h>\n")
    made = [*command, "-x", "c-header", str(folder / "before.h"), "-o", str(folder / "before.h.gch")]
    others = {n + k for n, word in enumerate(made) if word == "-include" for k in range(2)}  # come behind it, in turn
    kept = [word for n, word in enumerate(made) if n not in others and word != "-shared"]
    subprocess.run(kept, check=True, capture_output=True)
    return "-include", str(folder / "before.h")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="autosched-headers-")


def build(sources: list[CSource], folder: Path, *flags: str) -> ctypes.CDLL:
    """One shared library of all sources, with warnings as errors."""
    assert COMPILER is not None
    for source in sources:
        for header, needs in INCLUDED.items():
            assert f"#include <{header}>" in source.source or not re.search(needs, source.source), source.name
    files = []
    for source in sources:
        (folder / f"{source.name}.h").write_text(source.header)
        file = folder / f"{source.name}.c"
        file.write_text(source.source)
        files.append(str(file))
    library = folder / "kernels.so"
    command = [
        COMPILER,
        "-shared",
        "-fPIC",
        "-std=gnu11",
        "-march=native",
        "-ffp-contract=off",
        *WARNINGS,
        *WIDE,
        *(flags or ("-O2",)),
    ]
    beforehand = tuple(command)
    _built[beforehand] += len(sources)
    if _built[beforehand] >= MANY:
        command[1:1] = _read_beforehand(beforehand)
    done = subprocess.run([*command, *files, "-o", str(library), "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def call(
    library: ctypes.CDLL,
    kernel: Kernel,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, Any] | None = None,
    place: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] = lambda array: array,
    workspace_at: int = 0,
) -> dict[str, np.ndarray[Any, Any]]:
    """Run the prepare functions and main of a built kernel; outputs by name. Uninitialised memory is poisoned. `place`
    says where arrays lie, `workspace_at` how many bytes behind its memory's beginning the workspace begins."""
    name = print_c(kernel).name
    passed = [b for b in kernel.buffers.values() if b.scope in ("global", "packed")]
    memory = {b.name: place(_array(b, kernel, arrays)) for b in passed}
    for function in kernel.prepare:
        _call(library, f"{name}_{function.name}", function, kernel, memory, scalars or {}, None)
    sizes = [-(-b.elements * b.dtype.bytes // 64) * 64 for b in kernel.buffers.values() if b.scope == "workspace"]
    workspace = np.full(workspace_at + sum(sizes), 0xA5, np.uint8)[workspace_at:] if sizes else None
    _call(library, name, kernel.main, kernel, memory, scalars or {}, workspace)
    return {n: memory[n] for n in kernel.program.outputs}


def _array(buffer: Buffer, kernel: Kernel, arrays: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    if buffer.name in kernel.program.inputs:
        return np.array(arrays[buffer.name], order="C")
    poison = np.full(buffer.elements * np.dtype(buffer.dtype.numpy).itemsize, 0xA5, np.uint8)
    return poison.view(buffer.dtype.numpy).reshape(buffer.shape)


def _call(
    library: ctypes.CDLL,
    symbol: str,
    function: Function,
    kernel: Kernel,
    memory: Mapping[str, np.ndarray[Any, Any]],
    scalars: Mapping[str, Any],
    workspace: np.ndarray[Any, Any] | None,
) -> None:
    arguments: list[Any] = [ctypes.c_void_p(memory[b].ctypes.data) for b in function.buffers if b in memory]
    if function is kernel.main:
        arguments += [_scalar(kernel.program.scalars[s].dtype, scalars[s]) for s in kernel.program.scalars]
        if workspace is not None:
            arguments.append(ctypes.c_void_p(workspace.ctypes.data))
    routine = getattr(library, symbol)
    routine.restype = None
    routine(*arguments)


def _scalar(dtype: DType, value: Any) -> Any:
    stored = np.asarray(value).astype(dtype.numpy)
    if dtype.name in ("f32", "tf32"):
        return ctypes.c_float(float(stored))
    if dtype.name == "f64":
        return ctypes.c_double(float(stored))
    kind = getattr(ctypes, f"c_{'u' if dtype.kind != 'int' else ''}int{8 * stored.dtype.itemsize}")
    return kind(int(stored.view(f"{'i' if dtype.kind == 'int' else 'u'}{stored.dtype.itemsize}")))


def missing_features(kernel: Kernel) -> set[str]:
    """CPU features that the kernel's intrinsics need and this machine lacks."""
    wanted = {f for i in kernel.intrinsics for f in i.requires}
    try:
        flags = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return wanted
    return {f for f in wanted if f not in flags}
