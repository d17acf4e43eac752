"""Blocks with scales on this CPU: every byte of a scale, as plans of elements and of products compute with it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.compiled.llvm_kernels import run
from support.programs.written_scales import INPUTS, PROGRAM, assert_written

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

ELEMENTS = """
def f(A: {t}[16, 64], S: e8m0[16, 16], Y: f32[16, 64]):
    for i, j in grid(16, 64):
        Y[i, j] = f32(A[i, j]) * f32(S[i, j // 4])
"""
PRODUCT = """
def f(X: f32[17, 66], W: const[e2m1[66, 33]], S: const[e8m0[33, 33]], Y: f32[17, 33]):
    for i, j in grid(17, 33):
        Y[i, j] = 0
        for p in range(66):
            Y[i, j] += X[i, p] * (f32(W[p, j]) * f32(S[p // 2, j]))
"""
BYTES = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def kernels(program: Program, most: int) -> Any:
    _, plans = plans_of(TuneRequest(program, load_target("native"), device="cpu"))
    for plan in plans[:most]:
        for row in np.unique(np.ravel(plan.space.sample(2, np.random.default_rng(3)))):
            yield plan, lower(plan, plan.space.schedule(int(row)))


@pytest.mark.parametrize("t", ["e4m3", "e2m1"])
def test_elements_times_scales(t: str) -> None:
    rng = np.random.default_rng(0)
    numpy = ml_dtypes.float8_e4m3fn if t == "e4m3" else ml_dtypes.float4_e2m1fn
    a = rng.integers(0, 16 if t == "e2m1" else 127, (16, 64)).astype(np.uint8).view(numpy)
    given = {"A": a, "S": BYTES.reshape(16, 16)}
    with np.errstate(all="ignore"):
        want = a.astype(np.float32) * np.repeat(given["S"].astype(np.float32), 4, axis=1)
    for _, kernel in kernels(parse(ELEMENTS.format(t=t)), 2):
        for found in (run(kernel, given)["Y"], run_kernel(kernel, given)["Y"]):
            assert np.array_equal(found, want, equal_nan=True)


def test_scales_that_are_written() -> None:
    for _, kernel in kernels(PROGRAM, 2):
        for call in (run, run_kernel):
            assert_written(call(kernel, INPUTS))


def test_products_with_weights_of_blocks() -> None:
    """Ragged tiles: what stands past the ends of the scales adds nothing."""
    rng = np.random.default_rng(1)
    x, w = rng.integers(-3, 4, (17, 66)).astype(np.float32), rng.integers(0, 16, (66, 33)).astype(np.uint8)
    s = rng.integers(120, 134, (33, 33)).astype(np.uint8)
    s[5, 7] = 255
    given = {"X": x, "W": w.view(ml_dtypes.float4_e2m1fn), "S": s.view(ml_dtypes.float8_e8m0fnu)}
    want = x.astype(np.float64) @ (given["W"].astype(np.float64) * np.repeat(given["S"].astype(np.float64), 2, axis=0))
    assert np.isnan(want[:, 7]).all()
    seen = 0
    for _, kernel in kernels(parse(PRODUCT), 3):
        assert np.allclose(run_kernel(kernel, given)["Y"], want, rtol=1e-5, atol=1e-4, equal_nan=True)
        seen += 1
    assert seen >= 2
