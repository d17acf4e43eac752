"""Exported C at the edges of images: lanes before a line's first element and behind its last one are masked loads; and
vectors wider than the target's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from cpu.c_build import build, call, missing_features, needs_compiler
from pure.kernel_cases import inputs_for
from pure.value_cases import differing
from support.plans import machine, plans_of

from autosched.codegen.c import print_c
from autosched.codegen.interpreter import run_kernel
from autosched.codegen.kernel import Kernel
from autosched.codegen.lower import lower
from autosched.ir import workload

pytestmark = [needs_compiler, pytest.mark.compiler]
NARROW = machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32)
SIZES = {"h": 7, "w": 19, "c": 3, "layout": "nchw"}


def depthwise(instruction: str, **types: str) -> Iterator[Kernel]:
    """Rows of depthwise convolutions with channels first."""
    for plan in plans_of(workload("depthwise_conv2d", **SIZES, **types), NARROW, only=(instruction,)):
        if plan.tensor_parts:
            rows = plan.space.sample(40, np.random.default_rng(1))
            yield from (lower(plan, plan.space.schedule(int(row))) for row in rows)


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


def test_wide_vectors_ask_for_no_more_than_the_target_has() -> None:
    """Sixteen sums of four bytes, on a target whose vectors have 32."""
    kernels = depthwise("portable/mac.u8.s8.s32.v16", a="u8", b="s8", acc="s32")
    code = print_c(next(iter(kernels)))
    assert re.search(r"s32x16 acc\[", code.source)
    assert "avx512" not in code.flags
    assert "-mavx2" in code.flags
