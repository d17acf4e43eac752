"""Exported C of registers that are put together from runs of which a mask leaves some out: no loop over the lanes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.compiled.c_build import build, call, missing_features, needs_compiler
from support.plans import machine, plans_of
from support.programs.copies import DEPTHWISE, rows_with
from support.programs.kernel_cases import inputs_for
from support.programs.value_cases import differing

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse

pytestmark = [needs_compiler, pytest.mark.compiler]
NARROW = machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["padded", "direct"])
def test_what_a_mask_leaves_out_is_named_by_nobody(kind: str, tmp_path: Path) -> None:
    """Three taps in pairs, channels last: of the second pair one line of channels is not read, and the rest of the
    register is as it would be without a mask."""
    program = parse(DEPTHWISE, sizes={"t": "s16", "u": "s16", "c": 24})
    plan = next(p for p in plans_of(program, NARROW, only=("x86/vpmaddwd.ymm",)) if "←s" in p.name)
    rows = list(rows_with(plan, kind, 2))
    assert rows
    kernels = [replace(lower(plan, plan.space.schedule(row)), name=f"taps_{row}") for row in rows]
    if missing_features(kernels[0]):
        pytest.skip("needs AVX2")
    if kind == "padded":
        assert all("lanes[" not in print_c(kernel).source.split("acc[", 1)[1] for kernel in kernels)
    library = build([print_c(kernel) for kernel in kernels], tmp_path, "-O1", "-fopenmp")
    arrays = inputs_for(program)
    for kernel in kernels:
        want, got = run_kernel(kernel, arrays), call(library, kernel, arrays)
        assert not differing(got["Y"], want["Y"]).any()
