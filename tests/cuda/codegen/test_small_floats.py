"""Small floats: those of 8 bits are converted by the machine from compute capability 8.9 on, by C's texts below and on
a host; those of 4 bits by C's texts."""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from support.cards.gpu_plans import H200
from support.cards.hand_kernels import needs_compiler
from support.cards.nvrtc import needs_disassembler, needs_nvrtc

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.cuda.emulation import run_printed
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.compile.sass import instructions_of
from autosched.ir import parse
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

PROGRAM = """
def narrow(x: f32[64], y: e4m3[64], z: e5m2[64]):
    for i in range(64):
        y[i] = e4m3(x[i])
    for i in range(64):
        z[i] = e5m2(x[i])
"""
EDGES = (448.0, 464.0, 464.1, 480.0, 57344.0, 61439.0, 61440.0, np.inf, np.nan, 2.0**-9, 2.0**-10, 2.0**-16, 2.0**-17)


FOUR_BITS = """
def four(x: f32[64], u: u4[64], h: u16[64], y: e2m1[64], z: e2m1[64], w: f32[64], s: s4[64], v: f32[64]):
    for i in range(64):
        y[i] = e2m1(x[i])
    for i in range(64):
        z[i] = bits_e2m1(u[i])
    for i in range(64):
        w[i] = f32(bits_e2m1(u[i]))
    for i in range(64):
        s[i] = bits_s4(e2m1(x[i]))
    for i in range(64):
        v[i] = f32(bits_f16(h[i])) + f32(bits_bf16(h[i]))
"""


def kernel(program: str = PROGRAM) -> Kernel:
    _, (plan, *_) = plans_of(TuneRequest(parse(program), H200, device="simulator"))
    return lower(plan, plan.space.schedule(0))


def converting(source: CudaSource, arch: str) -> int:
    """Conversions of the machine."""
    needs_nvrtc(arch)
    needs_disassembler()
    return instructions_of(compile_cuda(source.text, arch, source.headers).code, arch)["F2FP"]


def test_the_machine_converts() -> None:
    source = print_cuda(kernel(), H200)
    assert converting(source, "sm_90a") >= 2
    assert converting(source, "sm_80") == 0


@needs_compiler
@pytest.mark.compiler
def test_texts_for_others_round_as_the_language_does() -> None:
    x = np.concatenate([EDGES, np.negative(EDGES), np.random.default_rng(0).normal(0, 100, 64 - 2 * len(EDGES))])
    x = x.astype(np.float32)
    found = run_printed(kernel(), dataclasses.replace(H200, cores=3), {"x": x})
    for name, dtype in (("y", ml_dtypes.float8_e4m3fn), ("z", ml_dtypes.float8_e5m2)):
        got, expected = np.asarray(found[name]).view(dtype).astype(np.float32), x.astype(dtype).astype(np.float32)
        assert np.array_equal(got, expected, equal_nan=True)


@needs_compiler
@pytest.mark.compiler
def test_every_pattern_of_four_bits() -> None:
    """And what lies beside each midpoint, infinities, and NaN of both signs, which are zeros without one."""
    middles = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0, 1e-45, 3e38], np.float32)
    x = np.concatenate([middles, np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(0))])
    special = np.array([0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000], np.uint32).view(np.float32)
    x = np.concatenate([special, x, -x])
    every = np.arange(64).astype(np.uint8) & np.uint8(15)
    h = (np.arange(64) * 487).astype(np.uint16)  # no NaN of either type
    arrays = {"x": x, "u": every.astype(ml_dtypes.uint4), "h": h}
    found = run_printed(kernel(FOUR_BITS), dataclasses.replace(H200, cores=3), arrays)
    codes = found["y"].view(np.uint8)
    assert codes[:4].tolist() == [0, 0, 7, 15]
    assert np.array_equal(codes[4:], x[4:].astype(ml_dtypes.float4_e2m1fn).view(np.uint8))
    assert np.array_equal(found["s"].astype(np.int8) & 15, codes)
    assert np.array_equal(found["z"].view(np.uint8), every)
    wide = every.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert np.array_equal(found["w"].view(np.uint32), wide.view(np.uint32))
    sums = h.view(np.float16).astype(np.float32) + h.view(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(found["v"], sums)


def test_four_bits_are_compiled_for_cards() -> None:
    source = print_cuda(kernel(FOUR_BITS), H200)
    assert "load_e2m1" in source.text
    for arch in ("sm_80", "sm_90a"):
        needs_nvrtc(arch)
        assert compile_cuda(source.text, arch, source.headers).code
