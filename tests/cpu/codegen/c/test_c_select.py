"""Selections of whole vectors stay blends, by GCC whichever level it optimises at."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpu.codegen.c.test_register_pressure import COMPILERS
from cpu.codegen.c.test_scarce_registers import rows
from support.compiled.c_build import COMPILER, needs_compiler
from support.compiled.machine_code import assembly, instructions, needs_gcc, snippet

from autosched.codegen.c import print_c
from autosched.codegen.c.registers import VectorHelpers
from autosched.codegen.c.vector_helpers import LaneHelpers
from autosched.ir.dtypes import DTYPES


@needs_gcc
@pytest.mark.x86
def test_selections_of_a_kernel_stay_blends_at_the_third_level(tmp_path: Path) -> None:
    """A softmax has 371 instructions by GCC 12, and 1,648 where it unrolls the loops over lanes."""
    assert len(instructions(assembly(print_c(rows()), tmp_path, "-O3"))) < 600


@needs_gcc
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_a_selection_is_a_blend(level: str, tmp_path: Path) -> None:
    found = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    if int(found.split(".")[0]) < 12:
        pytest.skip("GCC 11 vectorises nothing at -O2")
    vectors = VectorHelpers()
    chosen = LaneHelpers(vectors, 16, 64).select(DTYPES["f32"], "x <= y", "y", "x + y")
    function = f"void f(const f32x16 *a, const f32x16 *b, f32x16 *c) {{ f32x16 x = *a, y = *b; *c = {chosen}; }}"
    text = assembly(snippet(vectors, function), tmp_path, level, "-mavx512f")
    assert len(instructions(text)) < 12, text  # loads, a comparison, a blend or an addition under a mask, a store


@needs_compiler
@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_a_mask_that_the_compiler_knows(level: str, tmp_path: Path) -> None:
    """GCC took this one for a word that repeats, where a loop over lanes stays one."""
    lanes = [False, True, False, True, True, True, True, True]
    vectors = VectorHelpers()
    helpers = LaneHelpers(vectors, 8, 32)
    chosen = helpers.select(DTYPES["f32"], helpers.constant_mask(lanes, 32), "x", "x - x")
    load, store = (make(helpers.register(DTYPES["f32"])) for make in (vectors.load, vectors.store))
    function = f"void f(const float *a, float *b) {{ const f32x8 x = {load}(a); {store}(b, {chosen}); }}"
    source, library = tmp_path / "f.c", tmp_path / "f.so"
    source.write_text(snippet(vectors, function))
    command = [str(COMPILER), "-std=gnu11", level, "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    given, got = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    ctypes.CDLL(str(library)).f(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(got.ctypes.data))
    assert np.array_equal(got, np.where(lanes, given, 0))


@pytest.mark.x86
@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
@pytest.mark.parametrize(("name", "blend"), [("f32", "vblendvps"), ("f64", "vblendvpd"), ("u8", "vpblendvb")])
def test_a_selection_by_a_mask_is_a_blend(compiler: list[str], name: str, blend: str, tmp_path: Path) -> None:
    vectors, dtype = VectorHelpers(), DTYPES[name]
    helpers = LaneHelpers(vectors, 32 // dtype.bytes, 32)
    v, m, chosen = helpers.vector(dtype), helpers.signed(dtype.bits), helpers.select(dtype, "*m", "*x", "*y")
    function = f"void f(const {m} *m, const {v} *x, const {v} *y, {v} *z) {{ *z = {chosen}; }}"
    assert blend in assembly(snippet(vectors, function), tmp_path, "-mavx2", compiler=compiler)
