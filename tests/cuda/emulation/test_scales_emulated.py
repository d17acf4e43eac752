"""Every byte of a scale (e8m0), as printed for a GPU: on the emulated card, and compiled."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from support.cards.hand_kernels import needs_compiler
from support.cards.nvrtc import compiled
from support.programs.written_scales import INPUTS, PROGRAM, assert_written

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import Unit, build
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.tiling.planner.make_plans import make_plans

pytestmark = [needs_compiler, pytest.mark.compiler]
TEXT = """
def f(A: e4m3[16, 64], S: e8m0[16, 16], Y: f32[16, 64]):
    for i, j in grid(16, 64):
        Y[i, j] = f32(A[i, j]) * f32(S[i, j // 4])
"""


def as_printed(program: Program, given: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """What the first row's kernel gives on the emulated card, compiled for the real one, and in the interpreter."""
    target = load_target("nvidia-h200")
    plan = make_plans(program, target, {}, 1)[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.few[0])))
    source = print_cuda(kernel, target)
    assert compiled(source).kernels
    (emulated,) = build([Unit(source.text, "scales.cu", source.intrinsics, source.plan, kernel.program)])
    yield emulated.run(given, {})
    yield run_kernel(kernel, given)


@pytest.mark.slow
def test_scales_that_are_written_as_printed() -> None:
    for found in as_printed(PROGRAM, INPUTS):
        assert_written(found)


@pytest.mark.slow
def test_every_byte_as_printed() -> None:
    a = np.random.default_rng(0).integers(0, 127, (16, 64)).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    given = {"A": a, "S": np.arange(256).astype(np.uint8).reshape(16, 16).view(ml_dtypes.float8_e8m0fnu)}
    with np.errstate(all="ignore"):
        want = a.astype(np.float32) * np.repeat(given["S"].astype(np.float32), 4, axis=1)
    for found in as_printed(parse(TEXT), given):
        assert np.array_equal(found["Y"], want, equal_nan=True)
