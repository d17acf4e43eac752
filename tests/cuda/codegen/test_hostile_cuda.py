"""Exported CUDA of programs whose docstrings and names try to be code: the kernels compile, the header is read."""

from __future__ import annotations

import ast
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.cards.gpu_plans import H200
from support.cards.nvrtc import needs_nvrtc
from support.hostile import DOCS, product

from autosched.codegen.c.export.self_test import self_test
from autosched.codegen.cuda.export.files import CudaFiles, export_cuda
from autosched.codegen.cuda.export.torch_op import torch_op
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Comment, Kernel
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.planner.make_plans import make_plans

ALL = "\n".join(DOCS.values())
COMPILER = shutil.which("gcc") or shutil.which("clang")
RUNTIME = """typedef int cudaError_t;
typedef struct stream *cudaStream_t;
static inline const char *cudaGetErrorString(cudaError_t status) { return status == 100 ? "no device" : "fine"; }
"""
"""What the header and the self-test take from CUDA's runtime."""


@pytest.fixture(scope="module")
def plain() -> Kernel:
    plan = make_plans(parse(product("plain")), H200, {})[0]
    return lower(plan, plan.space.schedule(int(plan.space.enumerate(limit=1).ids[0])))


def said(kernel: Kernel, doc: str) -> tuple[Program, Kernel, CudaFiles]:
    program = parse(product(doc))
    main = replace(kernel.main, body=(Comment(doc), *kernel.main.body))
    kernel = replace(kernel, name="gemm", program=program, relies=(doc,), main=main)
    return program, kernel, export_cuda(kernel, H200)


@pytest.mark.parametrize("doc", [DOCS["line"], DOCS["include"], ALL], ids=["line", "include", "all"])
def test_the_kernels_compile(plain: Kernel, doc: str) -> None:
    needs_nvrtc("sm_90a")
    files = said(plain, doc)[2]
    text, _ = files.source.split("// Launchers.")
    assert set(compile_cuda(text, "sm_90a").kernels) == set(files.printed.plan.kernels)


@pytest.mark.parametrize("doc", [*DOCS.values(), ALL], ids=[*DOCS, "all"])
def test_only_comments_differ(plain: Kernel, doc: str) -> None:
    """The code of every file is the one of the program that says nothing."""
    (_, _, files), (_, _, quiet) = said(plain, doc), said(plain, "plain")

    def code(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.lstrip().startswith(("//", " *", "*", "/*"))]

    assert code(files.source) == code(quiet.source)
    assert code(files.header) == code(quiet.header)
    for text in (files.source, files.header):
        assert not any(line.rstrip().endswith(("\\", "??/")) for line in text.splitlines() if "//" in line)
    assert files.header.count("*/") == quiet.header.count("*/")


@pytest.mark.parametrize("doc", [*DOCS.values(), ALL], ids=[*DOCS, "all"])
def test_an_operator_s_file_is_what_was_meant(plain: Kernel, doc: str) -> None:
    """A docstring of the program once was pasted between three quotes."""
    (_, kernel, files), (_, _, quiet) = said(plain, doc), said(plain, "plain")
    tree, meant = ast.parse(torch_op(kernel, files)), ast.parse(torch_op(kernel, quiet))
    assert " ".join(doc.split()) in {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    assert [type(n) for n in ast.walk(tree)] == [type(n) for n in ast.walk(meant)]


@pytest.mark.sampled(5)
@pytest.mark.compiler
@pytest.mark.skipif(COMPILER is None, reason="no gcc or clang on this machine")
@pytest.mark.parametrize("doc", [ALL, *DOCS.values()], ids=["all", *DOCS])
def test_header_and_self_test_compile(plain: Kernel, doc: str, tmp_path: Path) -> None:
    assert COMPILER is not None
    program, kernel, files = said(plain, doc)
    (tmp_path / "cuda_runtime.h").write_text(RUNTIME)
    (tmp_path / "gemm.h").write_text(files.header, encoding="utf-8")
    (tmp_path / "gemm_test.c").write_text(self_test(kernel, files.on_host, program), encoding="utf-8")
    strict = ["-std=c11", "-trigraphs", "-Wall", "-Wextra", "-Werror", "-I."]
    command = [COMPILER, *strict, "-c", "gemm_test.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
