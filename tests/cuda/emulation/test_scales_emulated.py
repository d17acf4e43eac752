"""Every byte of a scale (e8m0), as printed for a GPU: on the emulated card, and compiled."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.cards.hand_kernels import needs_compiler
from support.cards.nvrtc import compiled

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import Unit, build
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.tiling.planner.make_plans import make_plans

pytestmark = [needs_compiler, pytest.mark.compiler]
WRITTEN = """
def g(S: e8m0[16, 16], U: u8[256], T: e8m0[16, 16], V: e8m0[256]):
    for i, j in grid(16, 16):
        T[j, i] = S[i, j]
    for i in range(256):
        V[i] = bits_e8m0(U[i] ^ 1)
"""
TEXT = """
def f(A: e4m3[16, 64], S: e8m0[16, 16], Y: f32[16, 64]):
    for i, j in grid(16, 64):
        Y[i, j] = f32(A[i, j]) * f32(S[i, j // 4])
"""


@pytest.mark.slow
def test_scales_that_are_written_as_printed() -> None:
    target, program = load_target("nvidia-h200"), parse(WRITTEN)
    plan = make_plans(program, target, {}, 1)[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.few[0])))
    source = print_cuda(kernel, target)
    assert compiled(source).kernels
    bits = np.arange(256).astype(np.uint8)
    given = {"S": bits.reshape(16, 16).view(ml_dtypes.float8_e8m0fnu), "U": bits}
    (emulated,) = build([Unit(source.text, "written.cu", source.intrinsics, source.plan, kernel.program)])
    for found in (emulated.run(given, {}), run_kernel(kernel, given)):
        assert np.array_equal(found["T"].view(np.uint8), bits.reshape(16, 16).T)
        assert np.array_equal(found["V"].view(np.uint8), bits ^ 1)


@pytest.mark.slow
def test_every_byte_as_printed() -> None:
    target, program = load_target("nvidia-h200"), parse(TEXT)
    plan = make_plans(program, target, {}, 1)[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.few[0])))
    source = print_cuda(kernel, target)
    assert compiled(source).kernels
    a = np.random.default_rng(0).integers(0, 127, (16, 64)).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    given = {"A": a, "S": np.arange(256).astype(np.uint8).reshape(16, 16).view(ml_dtypes.float8_e8m0fnu)}
    with np.errstate(all="ignore"):
        want = a.astype(np.float32) * np.repeat(given["S"].astype(np.float32), 4, axis=1)
    (emulated,) = build([Unit(source.text, "scales.cu", source.intrinsics, source.plan, kernel.program)])
    for found in (emulated.run(given, {})["Y"], run_kernel(kernel, given)["Y"]):
        assert np.array_equal(found, want, equal_nan=True)
