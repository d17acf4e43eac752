"""Building and loading: messages for what LLVM refuses, and compiled kernels as functions of arrays."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from support.compiled.llvm_kernels import F32, Kernel, intrinsic_dot, kernel, matmul, needs

from autosched.codegen.call.callable import CompiledKernel, aligned
from autosched.codegen.llvm.machine.compile import assembly, compile_object
from autosched.codegen.llvm.machine.errors import LlvmCompileError
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import Assign, Buffer, For, Lane
from autosched.errors import UnknownNameError, UsageError
from autosched.ir.nodes import ScalarParam
from autosched.ir.value import Arith, Call, Read, Scalar
from autosched.logic import Const, Var


def test_messages_of_llvm_reach_the_caller() -> None:
    with pytest.raises(LlvmCompileError, match="expected type"):
        compile_object("define void @f( { ret void }")
    with pytest.raises(LlvmCompileError, match="no function 'g'"):
        load("define void @f() { ret void }").address("g")
    with pytest.raises(LlvmCompileError, match="cannot load"):
        load(b"not an object")


def scaled(n: int = 48) -> Kernel:
    """y = exp(s * x), s at run time."""
    index = (Var("i") * 16 + Var("e"),)
    buffers = [Buffer("x", F32, (n,), "global"), Buffer("y", F32, (n,), "global")]
    value = Call("exp", (Arith("*", Scalar("s", F32), Read("x", index, F32), F32),), F32)
    body = (For("i", Const(0), Const(n // 16), (Assign("y", index, value, Lane("e", 16)),)),)
    return kernel(buffers, body, ["y"], scalars=(ScalarParam("s", F32),))


@pytest.mark.parametrize("cpu", [None, "x86-64"])
@needs("sse2")
def test_an_object_calls_libm_and_builds_for_other_cpus(cpu: str | None) -> None:
    k = scaled()
    compiled = CompiledKernel(k, load(compile_object(print_llvm(k), cpu)))
    x = np.linspace(-3, 3, 48, dtype=np.float32)
    y = compiled(x, 0.5)
    np.testing.assert_allclose(y, np.exp(0.5 * x), rtol=1e-6)
    out = np.empty_like(x)
    assert compiled(x, s=2.0, y=out) is out
    np.testing.assert_allclose(out, np.exp(2 * x), rtol=1e-6)
    compiled.run_raw(*compiled.pointers({"x": x, "y": out}, {}), 1.0)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-6)


@needs("sse2")
def test_arguments_are_checked() -> None:
    compiled = CompiledKernel(scaled(), load(print_llvm(scaled())))
    x = np.zeros(48, np.float32)
    cases = [
        ((), {}, "no array for x"), ((x,), {}, "no value for the scalar s"), ((x[:3], 1.0), {}, r"x is float32\[3\]"),
        ((x.astype(np.float64), 1.0), {}, "x is float64"), (([1.0], 1.0), {}, "not a numpy array"),
        ((np.zeros(96, np.float32)[::2], 1.0), {}, "not contiguous"),
        ((np.zeros(195, np.uint8)[3:].view(np.float32), 1.0), {}, "not lie on whole elements"),
        ((x,), {"s": 1.0, "y": x}, "y overlaps x"),
        ((x, x, 1.0, 2), {}, "takes 3 arguments"), ((x, 1.0), {"x": x}, "given twice"),
    ]  # fmt: skip
    for args, named, message in cases:
        with pytest.raises(UsageError, match=message):
            compiled(*args, **named)
    with pytest.raises(UnknownNameError, match="unknown argument 'z'"):
        compiled(x, 1.0, z=1)
    locked = np.zeros(48, np.float32)
    locked.flags.writeable = False
    with pytest.raises(UsageError, match="read-only"):
        compiled(x, s=1.0, y=locked)


@needs("avx512vnni")
def test_constants_are_packed_once() -> None:
    k = matmul(intrinsic_dot(), 9, 70, 21, 3, 2)
    compiled = CompiledKernel(k, load(print_llvm(k)))
    rng = np.random.default_rng(1)
    b = rng.integers(-128, 128, (21, 70)).astype(np.int8)
    fast = compiled.prepack(B=b)
    for _ in range(3):
        a = rng.integers(0, 256, (9, 21)).astype(np.uint8)
        np.testing.assert_array_equal(fast(a), a.astype(np.int32) @ b.astype(np.int32))
        np.testing.assert_array_equal(compiled(a, b), fast(a))
    with pytest.raises(UnknownNameError, match="unknown const tensor 'A'"):
        compiled.prepack(A=b)
    with pytest.raises(UsageError, match="needs the const tensor B"):
        compiled.prepack()


@needs("avx512vnni")
def test_the_inner_loop_has_no_spills() -> None:
    """24 accumulators, 4 registers of B and a broadcast fit the 32 registers: nothing goes through the stack."""
    text = assembly(print_llvm(matmul(intrinsic_dot(), 12, 64, 64, 6, 4, 1)), "znver4")
    blocks = text.split("\n.LBB")
    inner = max(blocks, key=lambda block: block.count("vpdpbusd"))
    assert inner.count("vpdpbusd") == 24
    assert inner.split("jl\t")[0].count("(%rsp") == 0


def test_fresh_arrays_are_aligned() -> None:
    for shape in ((3,), (5, 7), ()):
        array = aligned(shape, F32)
        assert array.shape == shape
        assert array.ctypes.data % 64 == 0


@pytest.mark.slow
def test_code_in_reference_cycles_can_be_collected() -> None:
    """In a process of its own: what went wrong here ended the process."""
    script = """
import gc
from autosched.codegen.llvm.machine.jit import load

class Holder:
    pass

for _ in range(60):
    holder = Holder()
    holder.itself = holder
    holder.module = load("define void @f() { ret void }")
    holder.function = holder.module.function("f")
    del holder
    gc.collect()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
