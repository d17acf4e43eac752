"""Exported CUDA: one file that needs no header of ours, launchers for every argument, a self-test, an operator."""

import ast
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from support.cards.nvrtc import needs_nvrtc

from autosched.codegen.c.export.self_test import self_test
from autosched.codegen.cuda.export.files import export_cuda
from autosched.codegen.cuda.export.torch_op import torch_op
from autosched.codegen.lower import lower
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.ir import parse, resolve
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.space.request import request
from autosched.tiling.variants.conditional import candidates_of
from autosched.tiling.variants.transposed_operands import transposed_programs

H200 = load_target("nvidia-h200")


@pytest.fixture(scope="module", params=["mma.m16n8k16.bf16.bf16.f32", "wgmma.m64n64k16.bf16.f32"])
def kernel(request):
    program = resolve("matmul_nt", {"m": 128, "n": 128, "k": 64, "t": "bf16", "out": "bf16"})
    found = match(program, usable(Catalogue.builtin(), H200, "cuda", [request.param]))
    plan = make_plans(program, H200, candidates_of(found))[0]
    row = int(np.ravel(plan.space.sample(1, np.random.default_rng(2)))[0])
    return program, replace(lower(plan, plan.space.schedule(row)), name="gemm")


def test_a_kernel_is_two_files_a_test_and_an_operator(kernel):
    program, lowered = kernel
    files = export_cuda(lowered, H200)
    assert '#include "autosched/' not in files.source
    for prototype in ("gemm(const uint16_t *A, const uint16_t *B, uint16_t *C,", "cudaError_t gemm_on_host("):
        assert prototype in files.header
        assert prototype in files.source
    for kernel_name in files.printed.plan.kernels:
        assert f"(const void *){kernel_name}," in files.source
    test = self_test(lowered, files.on_host, program)
    assert "gemm_on_host(A, B, C);" in test
    assert test.startswith("/* Self-test of gemm. Build: nvcc -gencode=arch=compute_90a")
    assert "gemm_test.c gemm.cu" in test.splitlines()[0]
    operator = torch_op(lowered, files)
    names = {n.name for n in ast.walk(ast.parse(operator)) if isinstance(n, ast.FunctionDef)}
    assert {"gemm", "_call"} <= names


RUNTIME = """typedef int cudaError_t;
typedef struct stream *cudaStream_t;
static inline const char *cudaGetErrorString(cudaError_t status) { return status == 100 ? "no device" : "fine"; }
"""
"""What the header and the self-test take from CUDA's runtime."""


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")
def test_a_self_test_says_why_a_call_failed(kernel, tmp_path):
    """It once compared what nobody had written, and named the elements."""
    program, lowered = kernel
    files = export_cuda(lowered, H200)
    (tmp_path / "cuda_runtime.h").write_text(RUNTIME)
    (tmp_path / "gemm.h").write_text(files.header)
    (tmp_path / "gemm_test.c").write_text(self_test(lowered, files.on_host, program))
    calls = "(const uint16_t *A, const uint16_t *B, uint16_t *C) { return A && B && C ? 100 : 0; }"
    (tmp_path / "gemm.c").write_text(f'#include "gemm.h"\ncudaError_t gemm_on_host{calls}\n')
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-I."]
    subprocess.run(["gcc", *strict, "gemm_test.c", "gemm.c", "-o", "gemm_test", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./gemm_test"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "gemm_on_host: no device\n")


def test_the_kernels_of_the_file_compile_by_themselves(kernel):
    needs_nvrtc("sm_90a")
    files = export_cuda(kernel[1], H200)
    text, launchers = files.source.split("// Launchers.")
    assert set(compile_cuda(text, "sm_90a").kernels) == set(files.printed.plan.kernels)
    assert launchers.count("{") == launchers.count("}")


def test_pixels_are_encoded_by_the_launcher():
    program = resolve("conv2d", {"n": 2, "h": 13, "w": 11, "ci": 16, "co": 32, "kw": 1, "stride": 2, "t": "f16"})
    found = match(program, usable(Catalogue.builtin(), H200, "cuda", ["wgmma.m64n16k16.f16.f32"]))
    plan = next(p for p in make_plans(program, H200, candidates_of(found)) if "(i←z.y.x, j←o, k←c)" in p.name)
    row = request(plan.space, {"copy": "TMA", "roles": "producer", "stages": 2, "swizzle": "32 B"}).row
    assert row is not None
    source = export_cuda(lower(plan, plan.space.schedule(row)), H200).source
    for line in (
        '"cuTensorMapEncodeIm2col", (void **)&encode',
        "const int lower[] = {-1, -1};",
        "const int upper[] = {1, -1};",
        "const cuuint32_t steps[] = {1, 2, 2, 1};",
        "extents, strides, lower, upper, 16, 64, steps,",
    ):
        assert line in source


def test_constants_are_turned_once():
    program = resolve("matmul", {"m": 64, "n": 32, "k": 96, "t": "s8", "acc": "s32"})
    found = match(program, usable(Catalogue.builtin(), H200, "cuda", ["wgmma.m64n16k32.s8.s8.s32"]))
    (variant,) = transposed_programs(program, found, "reassociated")
    assert variant.program.prepared == ("B_turned",)
    plan = make_plans(variant.program, H200, variant.certified(candidates_of(variant.matches)))[0]
    row = request(plan.space, {"copy": "TMA", "stages": 2, "swizzle": "32 B"}).row
    assert row is not None
    lowered = replace(lower(plan, plan.space.schedule(row)), name="gemm")
    files = export_cuda(lowered, H200)
    assert "gemm_prepare(const int8_t *B, int8_t *B_turned, cudaStream_t stream)" in files.header
    assert "_PREPARED = ['B']" in torch_op(lowered, files)
    assert files.source.count("(void)B;") == 1  # which compilers would warn of


def test_the_header_says_what_the_program_assumes():
    """Of one that an adapter made no text stands there, so nothing said it."""
    program = parse("""
def f(A: s8[32, 64], E: u8[32, 64], B: s8[32, 4, 64], C: s32[32, 64]):
    assume(E <= 3)
    assume(distinct(E, 2))
    for i, j in grid(32, 64):
        C[i, j] = 0
        for q in range(64):
            C[i, j] += s32(A[i, q]) * s32(B[q // 2, s32(E[i, q]), j])
""")
    catalogue, target = Catalogue.builtin(), load_target("nvidia-a100")
    plans = plan_program(program, target, catalogue, [catalogue["cuda/mma.sp.m16n8k64.s8.s8.s32"]]).plans
    plan = next(p for p in plans if p.tensor_parts)
    (row,) = plan.space.sample(1, np.random.default_rng(0))
    header = export_cuda(lower(plan, plan.space.schedule(int(row))), target).header
    assert "Right only where: E <= 3; of each 2 neighbours along the last dimension of E no two are equal." in header
