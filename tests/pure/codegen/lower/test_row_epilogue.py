"""Fused stages with functions of many steps: a loop over the rows of a register tile, which waits in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, Kernel, bodies, statements
from autosched.ir import workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.plan_program import float_policy_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of

AVX2 = machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32)
PROGRAMS = {
    "gelu": workload("matmul_bias_gelu", m=13, n=70, k=9),
    "swiglu": workload("swiglu", m=13, k=8, f=70, n=17),
    "relu": workload("matmul_bias_relu", m=13, n=70, k=9),
}


def plan_of(program: Program, target: Target, threads: int = 1) -> Plan:
    """The first plan with a fused stage whose lanes are columns, formulas in place of functions."""
    catalogue = Catalogue.builtin()
    only = (f"x86/vfmadd.f32.{'zmm' if target.limits['vector_bytes'] == 64 else 'ymm'}",)
    found = candidates_of(match(program, usable(catalogue, target, "cpu", only)))
    policy = float_policy_of(program, target, catalogue, "reassociated")
    plans = make_plans(program, target, found, threads, policy)
    return next(p for p in plans if any(t.epilogue and "i←j" in t.title for t in p.tensor_parts))


def rows(plan: Plan, count: int) -> list[int]:
    found: list[int] = plan.space.sample(count, np.random.default_rng(0)).tolist()
    return found


def kernels(plan: Plan, count: int) -> Iterator[Kernel]:
    yield from (lower(plan, plan.space.schedule(row)) for row in rows(plan, count))


def looped(kernel: Kernel) -> bool:
    """Whether a loop that is not unrolled reads a tile that waits."""
    tiles = {n for n in kernel.buffers if n.endswith("_tile")}
    loops = [s for s in kernel.statements if isinstance(s, For) and s.kind == "serial" and s.var.endswith("r")]
    inside = [i for loop in loops for body in bodies(loop) for i in statements(body) if isinstance(i, Assign)]
    return bool(tiles) and any(tile in str(i.value) for i in inside for tile in tiles)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["gelu", "swiglu"])
def test_functions_of_many_steps_are_computed_row_by_row(name: str, threads: int) -> None:
    plan = plan_of(PROGRAMS[name], machine(), threads)
    seen = [looped(kernel) for kernel in kernels(plan, 40)]
    assert any(seen)
    assert not all(seen)  # tiles of few registers
    assert disagreement(plan, rows(plan, 6), expect(PROGRAMS[name])) is None


@pytest.mark.parametrize(("name", "target"), [("relu", machine()), ("gelu", AVX2)])
def test_short_stages_and_small_registers_stay_as_they_are(name: str, target: Target) -> None:
    plan = plan_of(PROGRAMS[name], target)
    assert not any(n.endswith("_tile") for kernel in kernels(plan, 20) for n in kernel.buffers)


def test_each_thread_has_a_tile_of_its_own() -> None:
    plan = plan_of(PROGRAMS["gelu"], machine(), 2)
    shapes = {(k.threads, b.shape[0]) for k in kernels(plan, 40) for n, b in k.buffers.items() if n.endswith("_tile")}
    assert shapes == {(1, 1), (2, 2)}
