"""Stores past the caches as machine code and as exported C, into arrays that lie as they like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cpu.c_build import build, call, needs_compiler
from support.agreement import expect
from support.plans import machine
from support.scalar_programs import scalar_plans

from autosched.codegen.c import print_c
from autosched.codegen.callable import CompiledKernel
from autosched.codegen.kernel import Kernel
from autosched.codegen.llvm.compile import compile_object
from autosched.codegen.llvm.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.ir import workload
from autosched.ir.program import Program
from autosched.ir.reuse import keep_common
from autosched.machine.detect import host_features
from autosched.tiling.streams import exceeds_caches

HERE = machine(host_features())


def softmax() -> Program:
    kept = keep_common(workload("softmax", m=600, n=520))
    assert kept is not None
    assert exceeds_caches(kept.after, "Y", HERE)
    return kept.after


def kernel_of(wanted: Program, vector: int, threads: int) -> Kernel:
    plan = scalar_plans(wanted, HERE, threads)[0]
    names = {d.name.split(".")[-1]: d.name for d in plan.space.decisions}
    chosen = {"vector": vector, "unroll": 2, "rows": 2, "ahead": 1, "stores": 1, "math": 1, "threads": threads}
    return lower(plan, plan.space.schedule(plan.space.row_of({names[n]: v for n, v in chosen.items()})))


def moved(array: np.ndarray, elements: int) -> np.ndarray:
    """A copy that starts so many elements behind a cache line."""
    flat = np.zeros(array.size + 64, array.dtype)
    start = (-flat.ctypes.data % 64) // array.itemsize + elements
    result = flat[start : start + array.size].reshape(array.shape)
    result[...] = array
    return result


@pytest.mark.x86
@pytest.mark.parametrize(("vector", "threads", "behind"), [(16, 1, 0), (32, 2, 0), (16, 1, 1), (8, 1, 8), (4, 1, 4)])
def test_machine_code(vector: int, threads: int, behind: int) -> None:
    if "fma" not in host_features():
        pytest.skip("needs FMA")
    wanted = softmax()
    kernel = kernel_of(wanted, vector, threads)
    text = print_llvm(kernel)
    assert text.count("!nontemporal !0") > 0
    assert "sfence" in text
    compiled = CompiledKernel(kernel, load(compile_object(text)))
    expected = expect(wanted)
    found = moved(np.zeros((600, 520), np.float32), behind)
    compiled(X=expected.arrays["X"], Y=found)
    assert expected.difference({"Y": found}) is None


@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    wanted = softmax()
    kernel = kernel_of(wanted, 16, 1)
    printed = print_c(kernel)
    assert "_mm512_stream_si512" in printed.source
    expected = expect(wanted)
    assert expected.difference(call(build([printed], tmp_path, "-O1"), kernel, expected.arrays)) is None
