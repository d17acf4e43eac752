"""Turned stores as machine code and as exported C (tests/pure/test_turned_stores.py has them interpreted)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cpu.c_build import build, call, missing_features, needs_compiler
from pure.test_turned_stores import turned
from support.agreement import expect
from support.turned import PROGRAMS, rows_of_all_sizes

from autosched.codegen.c import print_c
from autosched.codegen.callable import CompiledKernel
from autosched.codegen.kernel import Kernel
from autosched.codegen.llvm.compile import compile_object
from autosched.codegen.llvm.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower


def kernels(name: str) -> list[Kernel]:
    plan, row = turned(name)
    found = [lower(plan, plan.space.schedule(r)) for r in rows_of_all_sizes(plan, row)]
    return [k for k in found if not missing_features(k)]


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
    made = [(replace(k, name=f"f_{n}"), n) for n in ("swapped", "nchw_bytes") for k in kernels(n)[3:4]]
    library = build([print_c(kernel) for kernel, _ in made], tmp_path, "-O1")
    for kernel, name in made:
        expected = expect(PROGRAMS[name])
        assert expected.difference(call(library, kernel, expected.arrays, expected.scalars)) is None
