"""Exported C, its self-test and its operator for PyTorch, of programs whose docstrings and names try to be code."""

from __future__ import annotations

import ast
import runpy
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hostile import DOCS, product
from support.plans import this_machine

from autosched.codegen.c import CSource, print_c
from autosched.codegen.c.export.self_test import self_test
from autosched.codegen.c.export.torch_op import torch_op
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Comment, Kernel
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.search.tuning.baseline import literal_plan

COMPILER = shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no gcc or clang on this machine")
ALL = "\n".join(DOCS.values())


def lowered(doc: str, name: str = "gemm") -> tuple[Program, Kernel]:
    """The loops as written, with a comment that says what the docstring says."""
    program = parse(product(doc))
    plan = literal_plan(program, this_machine())
    kernel = replace(lower(plan, plan.space.schedule(0)), name=name, relies=(doc,))
    return program, replace(kernel, main=replace(kernel.main, body=(Comment(doc), *kernel.main.body)))


def write(folder: Path, code: CSource, **others: str) -> None:
    texts = {f"{code.name}.h": code.header, f"{code.name}.c": code.source}
    for name, text in (texts | {n.replace("__", "."): t for n, t in others.items()}).items():
        (folder / name).write_text(text, encoding="utf-8")


def compiled(folder: Path, *arguments: str) -> None:
    assert COMPILER is not None
    done = subprocess.run([COMPILER, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sampled(5)
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("doc", [ALL, *DOCS.values()], ids=["all", *DOCS])
def test_c_compiles_and_its_self_test_passes(doc: str, tmp_path: Path) -> None:
    program, kernel = lowered(doc)
    code = print_c(kernel)
    write(tmp_path, code, gemm_test__c=self_test(kernel, code, program))
    flags = (*code.flags.split(), "-O0", "-trigraphs", "-Wall", "-Wextra", "-Werror")
    compiled(tmp_path, *flags, "gemm_test.c", "gemm.c", "-o", "gemm_test", "-lm")
    done = subprocess.run(["./gemm_test"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "ok\n"


@needs_compiler
@pytest.mark.compiler
def test_c_plus_plus_reads_the_header(tmp_path: Path) -> None:
    text = product(ALL).replace("Bß", "new").replace("alpha_ö", "this").replace("C大", "template")
    plan = literal_plan(parse(text), this_machine())
    code = print_c(replace(lower(plan, plan.space.schedule(0)), name="gemm"))
    write(tmp_path, code, call__cpp='#include "gemm.h"\nint main() { return 0; }\n')
    compiled(tmp_path, "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-c", "call.cpp")


def operands() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    a, b = rng.random((6, 7), np.float32), rng.random((7, 5), np.float32)
    return a, b, 1.5 * (a @ b)


def test_compiled_code_has_any_names() -> None:
    kernel = lowered(ALL)[1]
    a, b, want = operands()
    np.testing.assert_allclose(CompiledKernel(kernel, load(print_llvm(kernel)))(a, b, 1.5), want, rtol=1e-5)


@pytest.mark.parametrize("doc", [*DOCS.values(), ALL], ids=[*DOCS, "all"])
def test_an_operator_s_file_is_what_was_meant(doc: str) -> None:
    kernel = lowered(doc)[1]
    tree = ast.parse(torch_op(kernel, print_c(kernel)))
    plain = ast.parse(torch_op(lowered("plain")[1], print_c(kernel)))
    said = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    assert " ".join(doc.split()) in said
    assert [type(n) for n in ast.walk(tree)] == [type(n) for n in ast.walk(plain)]


def operator(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The operator of a library that was built in a folder of `folder`, loaded by a relative path."""
    kernel = lowered(ALL, name)[1]
    code = print_c(kernel)
    (folder / "lib").mkdir()
    write(folder / "lib", code, **{f"{name}_torch__py": torch_op(kernel, code)})
    compiled(folder / "lib", *code.flags.split(), "-shared", "-fPIC", f"{name}.c", "-o", f"{name}.so")
    monkeypatch.chdir(folder)
    made = runpy.run_path(f"lib/{name}_torch.py")[name]
    monkeypatch.chdir("/")
    return made


@needs_compiler
@pytest.mark.compiler
@pytest.mark.slow
def test_an_operator_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It once looked for its library in the folders of the system where it was called by a relative path."""
    torch = pytest.importorskip("torch")
    operator(tmp_path, "hostile_gemm", monkeypatch)
    a, b, want = operands()
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    called = torch.ops.autosched.hostile_gemm
    np.testing.assert_allclose(called(x, y, 1.5).numpy(), want, rtol=1e-5)
    for wrong in ((x.double(), y), (x[:5], y), (x.t().contiguous().t(), y)):
        with pytest.raises(ValueError, match=r"A is|the kernel takes"):
            called(*wrong, 1.5)


@needs_compiler
@pytest.mark.compiler
@pytest.mark.slow
def test_an_operator_is_compiled_into_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    made = operator(tmp_path, "traced_gemm", monkeypatch)
    a, b, want = operands()
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    torch.library.opcheck(torch.ops.autosched.traced_gemm.default, (x, y, 1.5))
    twice = torch.compile(lambda x, y: made(x, y, 1.5) * 2, fullgraph=True, backend="eager")
    np.testing.assert_allclose(twice(x, y).numpy(), 2 * want, rtol=1e-5)
