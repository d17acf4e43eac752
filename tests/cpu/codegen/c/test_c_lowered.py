"""Kernels that the lowering makes, exported as C: built, they compute what the interpreter computes, to the bit.

The interpreter itself is compared with the oracle by the lowering's own tests; here with a tolerance for float sums.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compiled.c_build import COMPILER, WARNINGS, build, call, missing_features, needs_compiler
from support.compiled.kernel_check import check_kernel
from support.plans import leading
from support.programs.kernel_cases import inputs_for
from support.programs.value_cases import differing

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import run, workload
from autosched.machine.detect import detect
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans

pytestmark = [needs_compiler, pytest.mark.compiler]

INTRINSICS = ("x86/vpdpbusd.zmm", "x86/vfmadd.f32.ymm", "portable/mac.f32.f32.f32.v8", "portable/mac.u8.s8.s32.v8")
PROGRAMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("matmul", {"m": 7, "n": 37, "k": 19, "a": "u8", "b": "s8", "acc": "s32"}),
    ("matmul_bias_relu", {"m": 5, "n": 19, "k": 7}),
    ("matmul_requant", {"m": 5, "n": 19, "k": 7}),
    ("conv2d", {"n": 1, "h": 5, "w": 6, "ci": 3, "co": 9}),
    ("softmax", {"m": 3, "n": 11}),
    ("conv2d_nchw", {"n": 1, "h": 3, "w": 18, "ci": 6, "co": 9, "a": "u8", "b": "s8", "acc": "s32"}),
    ("depthwise_conv2d", {"n": 1, "h": 3, "w": 5, "c": 18, "a": "u8", "b": "s8", "acc": "s32"}),
    ("conv2d_transposed", {"n": 1, "h": 3, "w": 4, "ci": 3, "co": 9}),
)


def kernels(name: str, sizes: dict[str, Any], seed: int) -> list[Kernel]:
    """One random row of each of the first plans."""
    program, target = workload(name, **sizes), detect()
    catalogue = Catalogue.builtin()
    usable = [i for i in (catalogue.find(n) for n in INTRINSICS) if target.has(i.requires)]
    mappings: dict[str, list[Any]] = {}
    for m in match(program, usable):
        mappings.setdefault(m.stage, []).extend(m.mappings)
    found = []
    for plan in leading(make_plans(program, target, mappings, threads=2), 2):
        row = int(plan.space.sample(1, np.random.default_rng(seed))[0])
        found.append(lower(plan, plan.space.schedule(row)))
    return found


@pytest.mark.slow
def test_lowered_kernels(tmp_path: Path) -> None:
    made = []
    for seed, (name, sizes) in enumerate(PROGRAMS):
        for kernel in kernels(name, sizes, seed):
            check_kernel(kernel)
            if not missing_features(kernel):
                made.append(replace(kernel, name=f"{name}_{len(made)}"))
    library = build([print_c(k) for k in made], tmp_path, "-O1", "-fopenmp")
    for kernel in made:
        arrays = inputs_for(kernel.program)
        want, expected = run_kernel(kernel, arrays), run(kernel.program, arrays)
        got = call(library, kernel, arrays)
        for output in expected:
            # exp and its kind are the C library's: an ulp in what softmax adds up.
            ulps = 4 if "softmax" in kernel.name else 0
            assert not differing(got[output], want[output], ulps).any(), kernel.name
            np.testing.assert_allclose(
                want[output].astype(float), expected[output].astype(float), rtol=1e-5, atol=1e-5, err_msg=kernel.name
            )


@pytest.mark.slow
def test_the_headers_build_line_is_enough(tmp_path: Path) -> None:
    """Vectors wider than the named flags allow are split and warned of; no instruction of `softmax` names any."""
    target = detect()
    if not target.has(frozenset({"avx512f"})):
        pytest.skip("no AVX-512 on this machine")
    (plan, *_) = make_plans(workload("softmax", m=3, n=33), target, {}, threads=1)
    assert plan.name == "M+S+Y: rows of i"
    for width in (4, 8, 16):
        row = next(
            int(r)
            for r in plan.space.sample(200, np.random.default_rng(0))
            if {v for k, v in plan.space.schedule(int(r)).named.items() if k.endswith("vector")} == {width}
        )
        source = print_c(replace(lower(plan, plan.space.schedule(row)), name=f"softmax_{width}"))
        (flags,) = re.findall(r"Build: (.*)", source.header)
        (tmp_path / f"{source.name}.h").write_text(source.header)
        (tmp_path / f"{source.name}.c").write_text(source.source)
        command = [str(COMPILER), "-c", *WARNINGS, *flags.split(), f"{source.name}.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
