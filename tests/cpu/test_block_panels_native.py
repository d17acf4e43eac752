"""Panels of one cache block as machine code and as exported C, each thread with its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cpu.c_build import build, call, missing_features, needs_compiler
from support.agreement import Expected, expect
from support.block_panels import PROGRAMS, blocked, small
from support.plans import machine, plans_of

from autosched.codegen.c import print_c
from autosched.codegen.callable import CompiledKernel
from autosched.codegen.kernel import Kernel
from autosched.codegen.llvm.compile import compile_object
from autosched.codegen.llvm.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.machine.detect import host_features

WIDE = "avx512f" in host_features()
HERE = machine(host_features(), registers=32 if WIDE else 16, vector_bytes=64 if WIDE else 32)


def kernels(name: str, count: int) -> tuple[list[Kernel], Expected]:
    """Kernels of random rows that pack blocks on two threads."""
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = PROGRAMS[name]
    plan = next(p for p in plans_of(program, small(HERE), threads=2) if p.tensor_parts)
    ids = blocked(plan)
    ids = ids[plan.space.values(ids)["threads"] == 2]
    rows = np.random.default_rng(5).choice(ids, size=count, replace=False).tolist()
    return [lower(plan, plan.space.schedule(row)) for row in rows], expect(program)


@pytest.mark.x86
@pytest.mark.parametrize("name", ["f32", "u8s8", "batch"])
def test_machine_code(name: str) -> None:
    found, expected = kernels(name, 3)
    for kernel in found:
        compiled = CompiledKernel(kernel, load(compile_object(print_llvm(kernel))))
        result = compiled(**{n: a.copy() for n, a in expected.arrays.items()})
        assert expected.difference({kernel.program.outputs[0]: result}) is None


@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made: list[tuple[Kernel, Expected]] = []
    for name in ("f32", "u8s8"):
        found, expected = kernels(name, 2)
        for kernel in found:
            if not missing_features(kernel):
                made.append((replace(kernel, name=f"f{len(made)}"), expected))
    library = build([print_c(kernel) for kernel, _ in made], tmp_path, "-O1", "-fopenmp")
    for kernel, expected in made:
        assert expected.difference(call(library, kernel, expected.arrays, expected.scalars)) is None
