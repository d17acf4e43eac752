"""Exported CUDA: one file that needs no header of ours, launchers for every argument, a self-test, an operator."""

import ast
from dataclasses import replace

import numpy as np
import pytest

from autosched.codegen.c.self_test import self_test
from autosched.codegen.cuda.files import export_cuda
from autosched.codegen.cuda.torch_op import torch_op
from autosched.codegen.lower import lower
from autosched.device.cuda.nvrtc import compile_cuda
from autosched.device.cuda.toolkit import toolkit
from autosched.errors import MissingError
from autosched.ir import resolve
from autosched.machine.catalogue import load_target
from autosched.search.tune import candidates_of, usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.plans import make_plans

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
    assert "arch=compute_90a" in test
    operator = torch_op(lowered, files)
    assert "@" not in operator.replace("@torch.library", "").replace("@gemm.register", "")
    names = {n.name for n in ast.walk(ast.parse(operator)) if isinstance(n, ast.FunctionDef)}
    assert {"gemm", "_call"} <= names


def test_the_kernels_of_the_file_compile_by_themselves(kernel):
    try:
        toolkit("sm_90a")
    except MissingError as error:
        pytest.skip(error.message)
    files = export_cuda(kernel[1], H200)
    text, launchers = files.source.split("// Launchers.")
    assert set(compile_cuda(text, "sm_90a").kernels) == set(files.printed.plan.kernels)
    assert launchers.count("{") == launchers.count("}")
