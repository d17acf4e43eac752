"""Exported C at the edges of images: lanes before a line's first element and behind its last one are masked loads.
Lanes that lie close together are whole loads and a shuffle; vectors wider than the target's are cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import WARNINGS, build, call, missing_features, needs_compiler
from support.plans import machine, plans_of
from support.programs.kernel_cases import inputs_for
from support.programs.scalar_programs import scalar_plans
from support.programs.value_cases import differing

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse, workload

pytestmark = [needs_compiler, pytest.mark.compiler]
NARROW = machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32)
SIZES = {"h": 7, "w": 19, "c": 3, "layout": "nchw"}


def depthwise(instruction: str, **types: str) -> Iterator[Kernel]:
    """Rows of depthwise convolutions with channels first."""
    for plan in plans_of(workload("depthwise_conv2d", **SIZES, **types), NARROW, only=(instruction,)):
        if plan.tensor_parts:
            rows = plan.space.sample(40, np.random.default_rng(1))
            yield from (lower(plan, plan.space.schedule(int(row))) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("features", [("-O2",), ("-O2", "-mno-avx2")])
def test_edges_of_lines_are_masked_loads(features: tuple[str, ...], tmp_path: Path) -> None:
    instruction = "portable/mac.f32.f32.f32.v4" if "-mno-avx2" in features else "x86/vfmadd.f32.ymm"
    edged = (k for k in depthwise(instruction) if "load_between" in print_c(k).source)
    made = [replace(kernel, name=f"edges_{n}") for n, kernel in enumerate(islice(edged, 3))]
    assert made
    if missing_features(made[0]):
        pytest.skip("needs AVX2")
    library = build([print_c(kernel) for kernel in made], tmp_path, *features)
    for kernel in made:
        arrays = inputs_for(kernel.program)
        want, got = run_kernel(kernel, arrays), call(library, kernel, arrays)
        assert not differing(got["Y"], want["Y"]).any()


@pytest.mark.slow
def test_wide_vectors_ask_for_no_more_than_the_target_has(tmp_path: Path) -> None:
    """Sixteen sums of four bytes, on a target whose vectors have 32: GCC kept them in memory."""
    made = [replace(k, name=f"wide_{n}") for n, k in enumerate(islice(bytes_by_lane(), 3))]
    for kernel in made:
        assert next(b for b in kernel.buffers.values() if b.name == "acc").shape[-1] == 16
        code = print_c(kernel)
        assert re.search(r"s32x8 acc\[", code.source)
        assert "s32x16" not in code.source
        assert "avx512" not in code.flags
        assert "-mavx2" in code.flags
    run_and_compare(made, tmp_path)


def bytes_by_lane() -> Iterator[Kernel]:
    return depthwise("portable/mac.u8.s8.s32.v16", a="u8", b="s8", acc="s32")


def run_and_compare(made: list[Kernel], folder: Path, *flags: str) -> None:
    if missing_features(made[0]):
        pytest.skip("needs AVX2")
    library = build([print_c(kernel) for kernel in made], folder, "-O2", *flags)
    for kernel in made:
        arrays = inputs_for(kernel.program)
        want, got = run_kernel(kernel, arrays), call(library, kernel, arrays)
        (output,) = kernel.program.outputs
        assert not differing(got[output], want[output]).any()


EVERY_OTHER = """
def f(X: f32[m, n], Y: f32[m, k], *, m=3, k=20):
    n = 2 * k - 1
    for i, j in grid(m, k):
        Y[i, j] = X[i, 2 * j] * 3.0
"""


@pytest.mark.slow
def test_lanes_that_lie_close_together_are_whole_loads(tmp_path: Path) -> None:
    """Windows of two numbers that move by one, and every other number: no load reaches past what lanes ask for."""
    windows = depthwise("x86/vpmaddwd.ymm", a="s16", b="s16", acc="s32")
    plan = scalar_plans(parse(EVERY_OTHER, filename="f.py"), NARROW)[0]
    rows = (plan.space.schedule(int(row)) for row in plan.space.enumerate().ids)
    strided = (lower(plan, row) for row in rows)
    for number, kernels in enumerate((windows, strided)):
        picked = (k for k in kernels if re.search(r"pick\d+_\w+\(&", print_c(k).source))
        made = [replace(k, name=f"picked_{number}_{n}") for n, k in enumerate(islice(picked, 2))]
        assert made
        folder = tmp_path / str(number)
        folder.mkdir()
        run_and_compare(made, folder, *WARNINGS)
