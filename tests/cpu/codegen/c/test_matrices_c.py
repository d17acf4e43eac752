"""Exported C on registers that hold matrices, its instructions emulated on plain arrays: compiled here, and run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.compiled.c_build import COMPILER, build, call, needs_compiler
from support.match.agreement import expect
from support.paths import TESTS
from support.plans import covering_rows
from support.programs.matrices import copied, matrix_plans, programs

from autosched.codegen.c import print_c
from autosched.codegen.lower import lower

PROGRAMS = programs()
EMULATION = TESTS / "support" / "amx_emulation.h"
BUILT = ("accumulated", "bias_start", "chain", "matmul_s8s8", "matmul_whole", "matmul_bf16", "batch_matmul", "conv")
FLAGS = ("-O2", "-include", str(EMULATION))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("name", BUILT)
def test_exported_c_computes_the_program(name: str, tmp_path: Path) -> None:
    expected = expect(PROGRAMS[name])
    for plan in matrix_plans(PROGRAMS[name], threads=2)[:1]:
        for number, row in enumerate(list(covering_rows(plan, seed=5))[:2]):
            kernel = lower(plan, plan.space.schedule(row))
            folder = tmp_path / f"{len(plan.name)}.{number}"
            folder.mkdir()
            flags = (*FLAGS, "-fopenmp") if kernel.threads > 1 else FLAGS
            library = build([print_c(kernel)], folder, *flags)
            wrong = expected.difference(call(library, kernel, expected.arrays, expected.scalars))
            assert wrong is None, f"{plan.name}\n{plan.space.schedule(row)}\n{wrong}"


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("name", ["window_thin", "window_first_odd"])
def test_exported_c_reads_images(name: str, tmp_path: Path) -> None:
    plan, rows = copied(name, 1)
    expected = expect(plan.program)
    kernel = lower(plan, plan.space.schedule(rows[0]))
    library = build([print_c(kernel)], tmp_path, *FLAGS, "-fopenmp")
    assert expected.difference(call(library, kernel, expected.arrays, expected.scalars)) is None


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("compiler", [c for c in ("gcc", "clang") if shutil.which(c)])
def test_compilers_make_its_instructions(compiler: str, tmp_path: Path) -> None:
    for name, wanted in (("matmul_s8u8", "tdpbsud"), ("matmul_bf16", "tdpbf16ps")):
        plan = matrix_plans(PROGRAMS[name])[0]
        source = print_c(lower(plan, plan.space.schedule(next(covering_rows(plan)))))
        (tmp_path / f"{source.name}.h").write_text(source.header)
        file = tmp_path / f"{source.name}.c"
        file.write_text(source.source)
        made = tmp_path / f"{source.name}.s"
        command = [compiler, "-S", "-Wall", "-Wextra", "-Werror", *source.flags.split(), str(file), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for text in (wanted, "ldtilecfg", "tileloadd", "tilestored", "tilerelease"):
            assert text in made.read_text()


def test_a_compiler_is_known() -> None:
    assert COMPILER is None or Path(COMPILER).exists()
