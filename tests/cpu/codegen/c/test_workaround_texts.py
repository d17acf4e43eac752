"""Workarounds for C compilers that no other test of compiled code needs: each in a few lines, or in printed text."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from cpu.codegen.c.test_register_pressure import AVX2, bytes_tile
from cpu.codegen.c.test_scarce_registers import rows
from support.compiled.c_build import WARNINGS
from support.plans import plans_of
from support.programs.matrices import matrix_plans, programs

from autosched.codegen import workarounds
from autosched.codegen.c import print_c
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import workload

GCC = which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no gcc on this machine")


def assembly(text: str, folder: Path, *flags: str) -> str:
    """What GCC makes of a file, without warnings."""
    (folder / "f.c").write_text(text)
    command = ["gcc", "-std=gnu11", "-O2", *flags, *WARNINGS, "-S", "-g0", str(folder / "f.c"), "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_gcc
@pytest.mark.x86
def test_what_a_matrix_is_loaded_from_is_stored_before(tmp_path: Path) -> None:
    """GCC 12 leaves out stores to an array that only a load of a matrix reads."""
    plan = matrix_plans(programs()["matmul_s8u8"])[0]
    row = int(plan.space.sample(1, np.random.default_rng(0))[0])
    loads = re.findall(r".*_tile_loadd.*", print_c(lower(plan, plan.space.schedule(row))).source)
    assert loads
    assert all(re.fullmatch(r" *as_written\(\); _tile_loadd\(.*\); as_written\(\);", line) for line in loads)
    load = re.sub(r"_tile_loadd\(.*?\);", "_tile_loadd(0, line, 64);", loads[0])
    text = f"""\
#include <immintrin.h>
{workarounds.AS_WRITTEN.explained}
void f(char x);
void f(char x) {{
  char line[64];
  for (int e = 0; e < 64; ++e) line[e] = x;
{load}
}}
"""
    made = assembly(text, tmp_path, "-mamx-tile", "-mavx512f")
    before = made[: made.index("tileloadd")]
    assert re.search(r"mov\w*\s+%[xyz]mm\d+, ", before), made


def test_rows_are_not_gathered_into_vectors() -> None:
    flag = "-fno-tree-slp-vectorize"
    assert flag in print_c(rows()).flags.split()
    assert flag not in print_c(bytes_tile()).flags  # sums of instructions are vectors already


@cache
def half_sums() -> Kernel:
    """A product of f16 by portable instructions of sixteen sums, twice what AVX2 holds."""
    program = workload("matmul", m=8, n=32, k=16, a="f16", b="f16", acc="f32")
    plan = next(p for p in plans_of(program, AVX2, only=("portable/mac.f16.f16.f32.v16",)) if "(i←i)" in p.name)
    return lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(1))[0])))


@needs_gcc
@pytest.mark.x86
def test_vectors_wider_than_the_machine_s_compile_without_warnings(tmp_path: Path) -> None:
    """GCC 12 warns of how calls would pass them."""
    code = print_c(half_sums())
    (tmp_path / f"{code.name}.h").write_text(code.header)
    assembly(code.source, tmp_path, *code.flags.split())
