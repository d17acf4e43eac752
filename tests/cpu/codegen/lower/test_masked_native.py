"""Products that a mask of the program governs, on AVX-512's masked sums: random programs in the loop-tree interpreter,
machine code and exported C; a mask that is all true; and numpy's answers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.match.agreement import disagreement, expect
from support.match.computes import CATALOGUE
from support.plans import this_machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

NAMES = ("x86/masked.vfmadd.f32.zmm", "x86/masked.vfmadd.f64.zmm", "x86/masked.vpdpbusd.zmm")
pytestmark = pytest.mark.skipif(
    not {"avx512f", "avx512_vnni"} <= host_features(), reason="this machine lacks AVX-512 with VNNI"
)


def random_program(seed: int) -> Program:
    rng = Random(f"masked {seed}")
    m, n, k = rng.choice((1, 3, 8)), rng.choice((5, 16, 17, 33, 48)), rng.choice((1, 4, 7, 16))
    x = rng.choice(("f32", "f64", "u8"))
    a, b, c = (x, "s8", "s32") if x == "u8" else (x, x, x)
    term = "s32(A[i, p]) * s32(B[p, j])" if x == "u8" else "A[i, p] * B[p, j]"
    axes = rng.choice(("j", "j", "i, j", "i"))
    shape = axes.replace("i", str(m)).replace("j", str(n))
    test = rng.choice(("M[{}] != 0", "M[{}] != 0", "M[{}] > 0", "M[{}] == 1")).format(axes)
    start = rng.choice(("0", "0", "3"))
    return parse(
        f"def f(A: {a}[{m}, {k}], B: {b}[{k}, {n}], M: b1[{shape}], C: {c}[{m}, {n}]):\n for i, j in grid({m}, {n}):\n"
        f"  C[i, j] = {start}\n  for p in range({k}):\n   if {test}:\n    C[i, j] += {term}\n"
    )


def governed(program: Program) -> list[Plan]:
    found = plan_program(program, this_machine(), CATALOGUE, [CATALOGUE[n] for n in NAMES]).every
    return [p for p in found if p.tensor_parts]


def kernels(seed: int) -> tuple[Program, list[Kernel]]:
    program, rng = random_program(seed), np.random.default_rng(seed)
    plans = governed(program)
    chosen = [plans[n] for n in rng.permutation(len(plans))[:2]]
    for plan in chosen:
        assert disagreement(plan, map(int, plan.space.sample(1, rng)), expect(program, seed)) is None
    return program, [lower(p, p.space.schedule(int(row))) for p in chosen for row in p.space.sample(1, rng)]


@pytest.mark.x86
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 80), marks=pytest.mark.slow)], ids=["few", "many"])
def test_machine_code(seeds: range) -> None:
    count = 0
    for seed in seeds:
        program, made = kernels(seed)
        count += len(made)
        if made:
            check_machine_code(made, expect(program, seed))
    assert count >= len(seeds) // 2


@needs_compiler
@pytest.mark.x86
@pytest.mark.compiler
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 40), marks=pytest.mark.slow)], ids=["few", "many"])
def test_exported_c(seeds: range, tmp_path: Path) -> None:
    made = [(kernel, expect(p, s)) for s in seeds for p, found in [kernels(s)] for kernel in found]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path)


@pytest.mark.x86
@pytest.mark.parametrize("mask", [True, False])
def test_bytes_against_numpy(mask: bool) -> None:
    guard = "   if M[j] != 0:\n    " if mask else "   "
    operands = "A: u8[9, 256], B: s8[256, 37], M: b1[37], C: s32[9, 37]"
    program = parse(
        f"def f({operands}):\n for i, j in grid(9, 37):\n  C[i, j] = 0\n  for p in range(256):\n"
        f"{guard}C[i, j] += s32(A[i, p]) * s32(B[p, j])\n"
    )
    plan = governed(program)[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (9, 256), np.uint8), rng.integers(-128, 128, (256, 37), np.int8)
    m = rng.integers(0, 2, 37, np.uint8)
    given = {"A": a, "B": b, "M": m}
    found = compiled(kernel)(**{n: given[n] for n in program.inputs})
    wanted = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(found, np.where(m != 0, wanted, 0) if mask else wanted)
