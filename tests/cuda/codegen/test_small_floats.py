"""8-bit floats: converted by the machine from compute capability 8.9 on, by C's texts below and on a host."""

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


def kernel() -> Kernel:
    _, (plan, *_) = plans_of(TuneRequest(parse(PROGRAM), H200, device="simulator"))
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
