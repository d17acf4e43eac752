"""Stores that keep one lane: LLVM 22 writes the element before truncation for them, over its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.llvm_kernels import kernel, needs

from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import Assign, Buffer, For, Lane
from autosched.ir.dtypes import dtype
from autosched.ir.value import Cast, Read
from autosched.logic import Const, Var


@needs("sse2")
@pytest.mark.parametrize("keep", [0, 1, 15])
@pytest.mark.parametrize(("wide", "narrow"), [("s32", "s8"), ("s32", "s16"), ("s64", "s32"), ("s16", "u8")])
def test_one_kept_lane_writes_one_element(wide: str, narrow: str, keep: int) -> None:
    source, target = dtype(wide), dtype(narrow)
    index = (Var("e"),)
    value = Cast(Read("x", index, source), target)
    valid = (Var("e") >= keep) & (Var("e") <= keep)
    buffers = [Buffer("x", source, (16,), "global"), Buffer("y", target, (16,), "global")]
    k = kernel(buffers, (Assign("y", index, value, Lane("e", 16), valid),), ["y"])
    x = np.arange(-8, 8).astype(source.numpy) * 5 + 1
    y = np.full(16, 77, target.numpy)
    CompiledKernel(k, load(print_llvm(k)))(x, y=y)
    expected = np.full(16, 77, target.numpy)
    expected[keep] = x[keep].astype(target.numpy)
    np.testing.assert_array_equal(y, expected)


@needs("sse2")
@pytest.mark.parametrize("last", [17, 33])
@pytest.mark.parametrize(("wide", "narrow"), [("s32", "s8"), ("s32", "s16"), ("f32", "bf16")])
def test_one_lane_that_an_unrolled_loop_keeps(wide: str, narrow: str, last: int) -> None:
    """A register tile's last vector, of which one column is in the tensor."""
    source, target = dtype(wide), dtype(narrow)
    at = Var("j") * 16 + Var("e")
    for valid in (at < last, (at < last) & (at % last < last)):
        stored = Assign("y", (at,), Cast(Read("x", (at,), source), target), Lane("e", 16), valid)
        loop = For("j", Const(0), Const(3), (stored,), "unrolled")
        k = kernel([Buffer("x", source, (48,), "global"), Buffer("y", target, (48,), "global")], (loop,), ["y"])
        x = (np.arange(-24, 24) * 5 + 1).astype(source.numpy)
        y = np.full(48, 77, target.numpy)
        CompiledKernel(k, load(print_llvm(k)))(x, y=y)
        np.testing.assert_array_equal(y[:last], x[:last].astype(target.numpy))
        np.testing.assert_array_equal(y[last:], np.full(48 - last, 77, target.numpy))
