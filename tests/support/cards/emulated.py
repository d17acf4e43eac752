"""Kernels of another machine under an emulator: LLVM's object or the exported C, with a driver; outputs as arrays."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autosched.backends import backend_of
from autosched.codegen.c import print_c
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import Buffer, Kernel
from autosched.machine.target import Target
from autosched.tensorize.check.emulator import EmulatedCalls, Emulator, installed

Arrays = Mapping[str, Any]


def emulator(isa: str) -> Emulator:
    """The emulator of an isa; skips the test where it or a compiler for it is missing."""
    found = installed().get(isa)
    if found is None:
        by = backend_of(isa).emulation
        assert by is not None
        command = by.run[0]
        lacking = "a C compiler for it" if shutil.which(command) else command
        pytest.skip(f"{lacking} is not installed")
    return found


def run_object(found: Emulator, kernel: Kernel, target: Target, arrays: Arrays) -> dict[str, Any]:
    """What LLVM's code for the target computes. The kernel has no run-time scalars and one thread."""
    kernel = replace(kernel, main=replace(kernel.main, name="kernel"))  # the driver has a `main`
    compiler = target.compiler
    code = compile_object(
        print_llvm(kernel), compiler.get("cpu"), compiler.get("features"), triple=compiler.get("triple")
    )
    names = [n for n, b in kernel.buffers.items() if b.scope in ("global", "packed", "workspace")]
    functions = [(f.name, [names.index(b) for b in f.buffers]) for f in (*kernel.prepare, kernel.main)]
    return _run(found, kernel, [code], [kernel.buffers[n] for n in names], [], functions, arrays)


def run_c(found: Emulator, kernel: Kernel, arrays: Arrays, folder: Path, flags: Sequence[str] = ()) -> dict[str, Any]:
    """What the exported C computes, built without warnings."""
    code = print_c(kernel)
    (folder / f"{code.name}.h").write_text(code.header)
    file = folder / f"{code.name}.c"
    file.write_text(code.source)
    names = [n for n, b in kernel.buffers.items() if b.scope in ("global", "packed")]
    spaces = [b for b in kernel.buffers.values() if b.scope == "workspace" and b.name in kernel.main.buffers]
    extra = [sum(-(-b.elements * b.dtype.bytes // 64) * 64 for b in spaces)] if spaces else []
    functions = []
    for f in (*kernel.prepare, kernel.main):
        passed = [names.index(b) for b in f.buffers if b in names]
        main = f is kernel.main
        functions.append(
            (code.name if main else f"{code.name}_{f.name}", passed + [len(names)] * (main and bool(extra)))
        )
    strict = ("-std=gnu11", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", *flags)
    return _run(found, kernel, [file], [kernel.buffers[n] for n in names], extra, functions, arrays, strict)


def _run(
    found: Emulator,
    kernel: Kernel,
    parts: list[Path | bytes],
    buffers: list[Buffer],
    extra: list[int],
    functions: list[tuple[str, list[int]]],
    arrays: Arrays,
    flags: Sequence[str] = (),
) -> dict[str, Any]:
    program = kernel.program
    names = [b.name for b in buffers]
    sizes = [b.elements * np.dtype(b.dtype.numpy).itemsize for b in buffers] + extra
    reads = [names.index(n) for n in program.inputs if n in names]
    writes = [names.index(n) for n in program.outputs]
    calls = EmulatedCalls(tuple(sizes), tuple((n, tuple(b)) for n, b in functions), tuple(reads), tuple(writes))
    data = b"".join(np.ascontiguousarray(arrays[names[n]]).tobytes() for n in reads)
    raw, out = found.run(parts, calls, data, flags), {}
    for n in writes:
        buffer = buffers[n]
        out[buffer.name] = np.frombuffer(raw[: sizes[n]], buffer.dtype.numpy).reshape(buffer.shape)
        raw = raw[sizes[n] :]
    return out
