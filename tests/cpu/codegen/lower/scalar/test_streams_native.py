"""Stores past the caches as machine code and as exported C, into arrays that lie as they like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import build, call, needs_compiler
from support.match.agreement import expect
from support.plans import machine
from support.programs.scalar_programs import scalar_plans

from autosched.codegen.c import print_c
from autosched.codegen.c.assignments import streamed
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, Kernel, Lane
from autosched.ir import workload
from autosched.ir.dtypes import DTYPES
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import keep_common
from autosched.ir.value import Read
from autosched.logic import Var
from autosched.machine.host import host_features
from autosched.tiling.analysis.nontemporal import exceeds_caches

F32 = DTYPES["f32"]
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


def test_stores_that_stand_together_ask_once_for_their_places() -> None:
    text = print_c(kernel_of(softmax(), 16, 1)).source
    block = text[text.index("const f32x16 Y_value = ") :]
    assert block.index("const f32x16 Y_value1 = ") < block.index("if (aligned(") < block.index("past_f32x16(")
    assert block.index("past_f32x16(") < block.index("} else {") < block.index("store_f32x16(")


def test_stores_that_read_what_others_store_are_apart() -> None:
    lane = Lane("e", 8)

    def store(to: str, source: str, at: int) -> Assign:
        return Assign(to, (Var("e") + at,), Read(source, (Var("e") + at,), F32), lane=lane, stream=True)

    apart, plain = store("Y", "Y", 16), replace(store("Y", "X", 24), stream=False)
    body = (store("Y", "X", 0), store("Y", "X", 8), apart, store("Z", "Y", 0), store("Z", "X", 8), plain)
    assert list(streamed(body)) == [body[:2], body[2:3], body[3:5], body[5:]]
    assert list(streamed((store("Y", "X", 0), store("Z", "Y", 0)))) == [(b,) for b in (body[0], body[3])]
