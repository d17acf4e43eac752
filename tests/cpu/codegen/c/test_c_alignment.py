"""Exported C asks for no alignment beyond that of elements, as its header says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compiled.c_build import build, call, missing_features, needs_compiler
from support.plans import machine, plans_of
from support.programs.kernel_cases import inputs_for

from autosched.codegen.c import print_c
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import workload

pytestmark = [needs_compiler, pytest.mark.compiler]
TRAPS = ("-O2", "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error")


def misaligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that begins one element behind a cache line."""
    memory = np.empty(array.nbytes + 64 + array.itemsize, np.uint8)
    first = -memory.ctypes.data % 64 + array.itemsize
    copy = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def kernels() -> list[Kernel]:
    """Products with panels of both operands, and softmax in vectors: both with a workspace."""
    target = machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32)
    found = []
    for program in (workload("matmul_tt", m=24, n=40, k=17), workload("softmax", m=5, n=37)):
        plan = next(p for p in plans_of(program, target) if p.tensor_parts or program.name == "softmax")
        rows = plan.space.sample(60, np.random.default_rng(2))
        lowered = (lower(plan, plan.space.schedule(int(row))) for row in rows)
        found.append(next(k for k in lowered if any(b.scope == "workspace" for b in k.buffers.values())))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O2",), TRAPS])
def test_memory_aligned_as_its_elements_will_do(flags: tuple[str, ...], tmp_path: Path) -> None:
    made = kernels()
    if any(map(missing_features, made)):
        pytest.skip("needs AVX2")
    library = build([print_c(kernel) for kernel in made], tmp_path, *flags)
    for kernel in made:
        header = print_c(kernel).header
        assert "as malloc returns it; aligned to 64 bytes it is fastest" in header
        arrays = inputs_for(kernel.program)
        want, got = call(library, kernel, arrays), call(library, kernel, arrays, place=misaligned, workspace_at=4)
        for name in kernel.program.outputs:
            assert np.array_equal(got[name], want[name])
