"""Kernels whose scales of groups are applied to sums: machine code and exported C agree with the program as written,
where its sums are finite and where they are not."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fuzz.grouped import grouped_data, grouped_text
from support.compiled.c_build import needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.match.agreement import Expected, expect
from support.plans import this_machine

from autosched import ir
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Branch, Kernel, statements
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

pytestmark = pytest.mark.x86
WEIGHTS = """
def f(X: f32[m, k], W: const[s8[k, n]], Z: const[s8[kg, n]], S: const[f32[kg, n]], Y: f32[m, n],
      *, m=3, n=40, k=48, g=16):
    kg = (k + g - 1) // g
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[i, p] * ((f32(W[p, j]) - f32(Z[p // g, j])) * S[p // g, j])
"""


def deferred_plans(program: Program, threads: int = 1) -> list[Plan]:
    target = this_machine()
    if "avx2" not in target.features:
        pytest.skip("needs AVX2")
    known = Catalogue.builtin()
    found = plan_program(program, target, known, usable(known, target, "cpu", ()), threads=threads)
    return [p for p in found.every if any(r.name.split()[0] == "defer" for r in p.rewrites)]


def tiled(threads: int = 1, **sizes: int) -> tuple[Program, list[Plan]]:
    """Sums of groups that are scaled and added up as they are finished, in tiles."""
    program, plans = weights(threads, m=16, n=128, k=32, g=16, **sizes)
    return program, [p for p in plans if any(r.name == "defer 16x64" for r in p.rewrites)]


@cache
def weights(threads: int = 1, **sizes: int) -> tuple[Program, list[Plan]]:
    program = ir.parse(WEIGHTS, sizes=sizes)
    return program, deferred_plans(program, threads)


def kernels(plans: list[Plan], count: int) -> list[Kernel]:
    made = []
    for plan in plans:
        ids = plan.space.sample(count, np.random.default_rng(5))
        made += [lower(plan, plan.space.schedule(int(row))) for row in ids]
    return made


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_machine_code(threads: int) -> None:
    program, plans = weights(threads)
    made = kernels(plans[:6], 3)
    assert made
    check_machine_code(made, expect(program))


@pytest.mark.sampled("1")
@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_in_machine_code(threads: int) -> None:
    program, plans = tiled(threads)
    assert all(p.in_tile_loops for p in plans)
    made = kernels(plans[:2], 2)
    assert made
    check_machine_code(made, expect(program))


def test_sums_of_groups_stay_in_a_tile() -> None:
    """What one group hands on to the next is no larger than a tile."""
    _, plans = tiled()
    plan = next(p for p in plans if p.intrinsics in (("x86/vfmadd.f32.zmm",), ("x86/vfmadd.f32.ymm",)))
    (kernel,) = kernels([plan], 1)
    handed = [b for b in kernel.buffers.values() if b.name.startswith(("Y_group", "Y_tile"))]
    assert handed
    assert all(np.prod([int(str(e)) for e in b.shape]) <= 16 * 64 for b in handed)


@needs_compiler
def test_exported_c(tmp_path: Path) -> None:
    program, plans = weights(m=1, k=44)
    made = kernels(plans[:4], 2)
    check_exported_c([(k, expect(program)) for k in made], tmp_path)


@pytest.mark.sampled("1")
@pytest.mark.parametrize("m", [1, 2])
def test_what_data_ask_for_is_asked_once_a_row(m: int) -> None:
    """The loops of a sum that is computed as written stand behind a branch."""
    _, plans = weights(m=m)
    made = kernels(plans, 3)
    alike = [k for k in made if k.schedule.get("Y.3.vector", 1) == 1]
    assert alike
    for kernel in alike:
        assert any(isinstance(s, Branch) for s in statements(kernel.main.body)), kernel.schedule


@pytest.mark.sampled("weights-infinite")
@pytest.mark.parametrize("kind", ["infinite", "nan"])
@pytest.mark.parametrize("planned", [weights, tiled])
def test_sums_that_are_not_finite(planned: Callable[[], tuple[Program, list[Plan]]], kind: str) -> None:
    program, plans = planned()
    made = kernels(plans[:4], 2)
    for seed in range(2):
        data = grouped_data(program, seed, kind)
        with np.errstate(all="ignore"):
            wanted = ir.run(program, data)
        tolerance = {"Y": np.where(np.isfinite(wanted["Y"]), 1e-2, 0.0)}
        for kernel in made:
            found = compiled(kernel)(**{n: a.copy() for n, a in data.items()})
            np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted["Y"]))
            there = {"Y": np.nan_to_num(wanted["Y"])}
            assert Expected(data, {}, there, tolerance).difference({"Y": np.nan_to_num(found)}) is None


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 40])
def test_random_programs(first: int) -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    count = 0
    for seed in range(first, first + 40):
        text = re.sub(r"\b(W|S|H|Z|V): ([a-z0-9]+\[[^]]*\])", r"\1: const[\2]", grouped_text(seed))
        program = ir.parse(text if seed % 2 else grouped_text(seed))
        made = kernels(deferred_plans(program)[:2], 1)
        count += len(made)
        if made:
            check_machine_code(made, expect(program))
    assert count > 10


@pytest.mark.slow
def test_random_programs_in_tiles() -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    count = 0
    for seed in range(3):
        text = re.sub(r"\b(W|S|H|Z|V): ([a-z0-9]+\[[^]]*\])", r"\1: const[\2]", grouped_text(seed, (16, 64)))
        program = ir.parse(text)
        made = kernels([p for p in deferred_plans(program) if p.in_tile_loops][:1], 2)
        count += len(made)
        if made:
            check_machine_code(made, expect(program))
    assert count
