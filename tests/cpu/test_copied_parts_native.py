"""Copies of parts as machine code and as exported C, each thread with its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cpu.c_build import build, call, missing_features, needs_compiler
from support.agreement import expect
from support.copied_parts import PROGRAMS, parted

from autosched.codegen.c import print_c
from autosched.codegen.callable import CompiledKernel
from autosched.codegen.kernel import Kernel
from autosched.codegen.llvm.compile import compile_object
from autosched.codegen.llvm.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower


def kernels(name: str) -> list[Kernel]:
    plan, rows = parted(name)
    return [k for k in (lower(plan, plan.space.schedule(r)) for r in rows) if not missing_features(k)]


@pytest.mark.x86
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code(name: str) -> None:
    expected = expect(PROGRAMS[name])
    found = kernels(name)
    if not found:
        pytest.skip("the machine lacks the instruction")
    for kernel in found:
        compiled = CompiledKernel(kernel, load(compile_object(print_llvm(kernel))))
        result = compiled(**{n: a.copy() for n, a in expected.arrays.items()})
        assert expected.difference({kernel.program.outputs[0]: result}) is None


@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made = [(replace(k, name=f"f{n}"), "channels_of_bytes") for n, k in enumerate(kernels("channels_of_bytes")[1:3])]
    library = build([print_c(kernel) for kernel, _ in made], tmp_path, "-O1", "-fopenmp")
    for kernel, name in made:
        expected = expect(PROGRAMS[name])
        assert expected.difference(call(library, kernel, expected.arrays, expected.scalars)) is None
