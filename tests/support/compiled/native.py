"""What a kernel computes as machine code and as exported C, against what is expected; for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.compiled.c_build import build, call
from support.match.agreement import Expected

from autosched.codegen.c import print_c
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import Kernel


def compiled(kernel: Kernel) -> CompiledKernel:
    return CompiledKernel(kernel, load(compile_object(print_llvm(kernel))))


def check_machine_code(kernels: Sequence[Kernel], expected: Expected) -> None:
    """Fails where a compiled kernel differs; skips where there is none."""
    if not kernels:
        pytest.skip("the machine lacks the instruction")
    for kernel in kernels:
        given = {n: a.copy() for n, a in expected.arrays.items()} | expected.scalars
        result = compiled(kernel)(**given)
        results = result if isinstance(result, tuple) else (result,)
        wrong = expected.difference(dict(zip(kernel.program.outputs, results, strict=True)))
        assert wrong is None, f"{kernel.program}\n{kernel.schedule}\n{wrong}"


def check_exported_c(made: Sequence[tuple[Kernel, Expected]], folder: Path, *flags: str) -> None:
    """Builds all kernels into one library of C, and fails where one of them differs."""
    named = [(replace(kernel, name=f"f{n}"), expected) for n, (kernel, expected) in enumerate(made)]
    library = build([print_c(kernel) for kernel, _ in named], folder, "-O1", *flags)
    for kernel, expected in named:
        wrong = expected.difference(call(library, kernel, expected.arrays, expected.scalars))
        assert wrong is None, f"{kernel.program}\n{kernel.schedule}\n{wrong}"
