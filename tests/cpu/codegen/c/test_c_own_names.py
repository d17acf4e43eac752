"""Tensors and scalars called like what exported C declares itself, and exported C in a C++ compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.compiled.c_build import needs_compiler
from support.compiled.native import check_exported_c
from support.match.agreement import expect
from support.plans import leading, plans_of, this_machine

from autosched.codegen.c import print_c
from autosched.codegen.c.export.self_test import self_test
from autosched.codegen.c_like.names import Names
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.ir.program import Program

GXX = shutil.which("g++") or shutil.which("clang++")
PRODUCT = """\
def gemm({a}: {ta}[m, k], {b}: const[{tb}[k, n]], {c}: {tc}[m, n], {s}: {tc}, *, m=7, n=37, k=19):
    for i, j in grid(m, n):
        {c}[i, j] = 0
        for p in range(k):
            {c}[i, j] += {tc}({a}[i, p]) * {tc}({b}[p, j])
        {c}[i, j] = max({c}[i, j], {s})
"""
TYPES = [("f32", "f32", "f32"), ("u8", "s8", "s32")]


def product(types: tuple[str, str, str], a: str = "A", b: str = "B", c: str = "C", s: str = "low") -> Program:
    return parse(PRODUCT.format(a=a, b=b, c=c, s=s, **dict(zip(("ta", "tb", "tc"), types, strict=True))))


def kernels(program: Program) -> list[Kernel]:
    """The first and the last row of two plans, on two threads."""
    found = []
    for plan in leading(plans_of(program, this_machine(), threads=2), 2):
        rows = plan.space.enumerate().ids[[0, -1]].tolist()
        found += [lower(plan, plan.space.schedule(row)) for row in rows]
    return found


def declared(program: Program) -> list[str]:
    """The identifiers that the code of its kernels declares: variables of loops, registers, copies, buffers."""
    text = "\n".join(print_c(kernel).source for kernel in kernels(program))
    body = text[text.index("gemm(") :]
    found = re.findall(r"^ +(?:for \(|const )?(?:\w+ \**)+(?:const )?(\w+)(?:\[\w+\])* *(?:=|;)", body, re.MULTILINE)
    free = {name for name in found if Names()(name) == name}
    loops = {a.name for s in program.stages for a in s.axes}
    return sorted(free - {*program.tensors, *program.scalars, *program.sizes, *loops})


@pytest.mark.sampled("some names")
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize(
    ("types", "step"), [(TYPES[0], 16), *((t, 2) for t in TYPES)], ids=["some names", "f32", "u8s8"]
)
def test_tensors_may_have_the_names_that_the_code_declares(
    types: tuple[str, str, str], step: int, tmp_path: Path
) -> None:
    """Each name, as that of a tensor and of a scalar: the code compiles, computes the same, and the name is kept."""
    names = declared(product(types))
    assert {"it", "thread", "jt"} <= set(names)
    made = []
    for n in range(0, len(names), step):
        given = (names + names)[n : n + 4]
        program = product(types, *given)
        expected = expect(program)
        for kernel in kernels(program):
            assert all(re.search(rf"\W{name}[,)]", print_c(kernel).header) for name in given)
            made.append((kernel, expected))
    check_exported_c(made, tmp_path)


@needs_compiler
@pytest.mark.compiler
def test_tensors_may_have_the_names_of_a_macros_parameters(tmp_path: Path) -> None:
    program = product(TYPES[0], "i0", "i1", "i2", "i3")
    expected = expect(program)
    check_exported_c([(kernel, expected) for kernel in kernels(program)], tmp_path)


@pytest.mark.sampled("u8s8")
@pytest.mark.skipif(GXX is None, reason="no g++ or clang++ on this machine")
@pytest.mark.compiler
@pytest.mark.parametrize("types", TYPES, ids=["f32", "u8s8"])
def test_cpp_compilers_take_the_source_and_its_self_test(types: tuple[str, str, str], tmp_path: Path) -> None:
    assert GXX is not None
    for number, kernel in enumerate(kernels(product(types))):
        code = print_c(replace(kernel, name=f"gemm{number}"))
        texts = {".h": code.header, ".c": code.source, "_test.c": self_test(kernel, code, kernel.program)}
        files = [tmp_path / f"{code.name}{ending}" for ending in texts]
        for file, text in zip(files, texts.values(), strict=True):
            file.write_text(text, encoding="utf-8")
        options = ["-x", "c++", "-march=native", "-ffp-contract=off", "-O1", "-Wno-psabi"]
        command = [GXX, *options, *map(str, files[1:]), "-o", str(tmp_path / code.name), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert subprocess.run([tmp_path / code.name], check=False).returncode == 0
