"""Workarounds for C compilers that no other test of compiled code needs: each in a few lines, or in printed text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cpu.codegen.c.test_register_pressure import AVX2, blocks, bytes_tile, scheduled
from cpu.codegen.c.test_scarce_registers import rows
from support.compiled.c_build import build, needs_compiler
from support.compiled.machine_code import assembly, instructions, needs_gcc, snippet
from support.plans import machine, plans_of
from support.programs.copies import DEPTHWISE, rows_with
from support.programs.matrices import matrix_plans, programs
from support.programs.value_cases import kernel_of, read

from autosched.codegen import workarounds
from autosched.codegen.c import print_c
from autosched.codegen.c.registers import VectorHelpers
from autosched.codegen.c.vector_helpers import LaneHelpers
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse, workload
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Comparison, Literal, Select, Value


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
    assembly(print_c(half_sums()), tmp_path)


@needs_gcc
@pytest.mark.x86
def test_accumulators_stay_in_their_registers(tmp_path: Path) -> None:
    """GCC 12 copies all twelve twice a round where they are declared `__m512i`."""
    program = workload("matmul", m=32, n=64, k=64, a="u8", b="s8", acc="s32")
    wanted = {"reg_i": 4, "reg_j": 3, "block_i": 0, "block_p": 0, "pack_b": "panel", "unroll": 1, "inner": "rows"}
    code = print_c(scheduled(program, "x86/vpdpbusd.zmm", wanted, machine()))
    loops = [b for b in blocks(assembly(code, tmp_path)) if "vpdpbusd" in b]
    assert loops
    for loop in loops:
        assert not re.search(r"vmov\w+\s+%zmm\d+, %zmm", loop), loop


@needs_gcc
@pytest.mark.x86
def test_functions_on_vectors_are_not_called(tmp_path: Path) -> None:
    """GCC 12 leaves the exponential a function of its own, where it is called from several places."""
    made = assembly(print_c(rows(**{"M.rows": 4})), tmp_path)
    assert not re.search(r"\bcall\s+(approximate|fma|select)_\w+", made)


@needs_gcc
@pytest.mark.x86
@pytest.mark.parametrize(
    ("source", "dtype", "lanes", "most"),
    [("u8", "s32", 8, 6), ("s8", "s16", 16, 6), ("s32", "u8", 8, 20), ("u8", "f32", 8, 8), ("s8", "s32", 16, 4)],
)
def test_vectors_are_converted_whole(source: str, dtype: str, lanes: int, most: int, tmp_path: Path) -> None:
    """In 4, 4, 16, 5 and 4 instructions by GCC 12: 12, 8, 24, 31 and 51 without ways between and x86's own."""
    vectors = VectorHelpers()
    helpers, old, new = LaneHelpers(vectors, lanes, 64), DTYPES[source], DTYPES[dtype]
    v, w, converted = helpers.vector(old), helpers.vector(new), helpers.converted(old, new, "*x")
    flag = "-mavx512bw" if lanes * new.bytes == 64 else "-mavx2"
    made = assembly(snippet(vectors, f"void f(const {v} *x, {w} *y) {{ *y = {converted}; }}"), tmp_path, flag)
    assert len(instructions(made)) <= most, made


@pytest.mark.slow
@needs_gcc
@pytest.mark.x86
def test_elements_that_a_mask_leaves_out_are_not_zeros(tmp_path: Path) -> None:
    """Three taps in pairs, channels last, loaded and stored on the stack 62 times by GCC 12: 116 with zeros."""
    program = parse(DEPTHWISE, sizes={"t": "s16", "u": "s16", "c": 24})
    plan = next(p for p in plans_of(program, AVX2, only=("x86/vpmaddwd.ymm",)) if "←s" in p.name)
    row = list(rows_with(plan, "padded", 2))[1]
    made = assembly(print_c(lower(plan, plan.space.schedule(row))), tmp_path, "-fomit-frame-pointer")
    assert made.count("(%rsp") < 90


@needs_compiler
@pytest.mark.compiler
def test_comparisons_with_limits_compile_without_warnings(tmp_path: Path) -> None:
    values: dict[str, Value] = {}
    for dtype in (DTYPES[d] for d in ("u8", "s8", "u32", "s32", "u64")):
        for n, (op, limit) in enumerate(zip(("<", ">=", ">", "<="), sorted(2 * dtype.limits), strict=True)):
            x, bound = read(f"x_{dtype}", dtype), Literal(limit, dtype)
            values[f"{dtype}_{n}"] = Select(Comparison(op, x, bound), x, Literal(1, dtype), dtype)
            mirrored = {"<": ">", ">=": "<=", ">": "<", "<=": ">="}[op]
            values[f"{dtype}_{n}_mirrored"] = Select(Comparison(mirrored, bound, x), x, Literal(1, dtype), dtype)
    inputs = {f"x_{d}": DTYPES[d] for d in ("u8", "s8", "u32", "s32", "u64")}
    build([print_c(kernel_of("limits", values, inputs, 64))], tmp_path, "-O1")


@needs_gcc
@pytest.mark.x86
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 4), ("f32", 8), ("f64", 4)])
def test_fused_products_are_one_instruction(dtype: str, lanes: int, tmp_path: Path) -> None:
    vectors, kind = VectorHelpers(), DTYPES[dtype]
    helpers = LaneHelpers(vectors, lanes, 64)
    v, fused = helpers.vector(kind), helpers.each("fma", kind, ["*x", "*y", "*z"])
    function = f"#include <math.h>\nvoid f(const {v} *x, const {v} *y, {v} *z) {{ *z = {fused}; }}"
    made = assembly(snippet(vectors, function), tmp_path, "-mavx2", "-mfma")
    assert len(re.findall(r"\bvfmadd", made)) == 1, made
