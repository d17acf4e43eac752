"""Sums of groups with scales, added up in the registers of the warps that computed them: in tile loops (plans
`[defer 64x64]`), or by the nest itself, whose producer fetches slices beside (`adding up`)."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzz.added import search
from support.cards.block_chains import several
from support.cards.checked_kernels import checked
from support.cards.gpu_plans import CATALOGUE
from support.cards.hand_kernels import needs_compiler

from autosched import ir
from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.families import DEFERRED
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.find_warp_rows import rows_inside
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.steps.gpu.operands.slice_copies import BULK
from autosched.tiling.steps.gpu.warp_roles import PRODUCER

pytestmark = [needs_compiler, pytest.mark.compiler]

SCALED = """
def scaled(A: t[m, k], B: const[t[n, k]], R: f32[m, kg], S: const[f32[kg, n]], C: f32[m, n],
           *, m=64, n=64, k=128, g=64, t="e4m3"):
    assume(k % g == 0)
    kg = k // g
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += (f32(A[i, p]) * R[i, p // g]) * (f32(B[j, p]) * S[p // g, j])
"""


NARROW = """
def narrow(X: t[m, k], W: const[u4[k, n]], S: const[f32[kg, n]], Z: const[u4[kg, n]], C: f32[m, n],
           *, m=64, n=64, k=64, g=32, t="f16"):
    kg = k // g
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += f32(X[i, p]) * ((f32(W[p, j]) - f32(Z[p // g, j])) * S[p // g, j])
"""
"""Weights that a block makes f16 of, without their scales."""


@cache
def deferred(text: str, target: str, numerics: str = "rescaled", **sizes: Any) -> tuple[Plan, ...]:
    machine = dataclasses.replace(load_target(target), cores=3)
    program = ir.parse(text, sizes=sizes)
    known = usable(CATALOGUE, machine, "simulator", None)
    return plan_program(program, machine, CATALOGUE, known, numerics=numerics, families=[DEFERRED]).plans


def in_blocks(text: str, target: str, **sizes: Any) -> Plan:
    """The first plan whose blocks add sums of groups up."""
    return next(p for p in deferred(text, target, **sizes) if p.in_tile_loops)


def by_the_nest(text: str, target: str, numerics: str, **sizes: Any) -> Plan:
    """The first plan whose nest does."""
    return next(p for p in deferred(text, target, numerics, **sizes) if any(t.nest.groups for t in p.tensor_parts))


CASES = {
    "wgmma e4m3": (SCALED, "nvidia-h200", {}),
    "wgmma f16": (SCALED, "nvidia-h200", {"t": "f16", "n": 128, "g": 32}),
    "mma e4m3": (SCALED, "nvidia-rtx4090", {"m": 16}),
    "mma bf16": (SCALED, "nvidia-a100", {"t": "bf16", "k": 96, "g": 32}),
    "wgmma u4": (NARROW, "nvidia-h200", {}),
    "mma u4": (NARROW, "nvidia-a100", {"m": 16, "k": 256, "g": 128}),
}


UNPLANNED = pytest.mark.xfail(
    raises=StopIteration, strict=True, reason="plans that store the groups' sums are ranked before it, and few are kept"
)


@pytest.mark.sampled("mma bf16")
@pytest.mark.parametrize("name", CASES)
def test_groups_stay_in_registers(name: str) -> None:
    text, target, sizes = CASES[name]
    plan = in_blocks(text, target, **sizes)
    assert name.split()[0] in plan.name
    assert "[defer " in plan.name
    assert any(rows_inside(p) for p in plan.parts if isinstance(p, TileLoopsPart))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_kernels_are_right(name: str) -> None:
    text, target, sizes = CASES[name]
    plan = in_blocks(text, target, **sizes)
    checked(plan, several(plan, 3), "groups")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "numerics"),
    [
        pytest.param(name, numerics, marks=UNPLANNED if (name[-2:], numerics) == ("u4", "rescaled") else ())
        for name in CASES
        for numerics in ("rescaled", "real")
    ],
)
def test_kernels_whose_nest_adds_groups_up_are_right(name: str, numerics: str) -> None:
    text, target, sizes = CASES[name]
    plan = by_the_nest(text, target, numerics, **sizes)
    checked(plan, several(plan, 3), "added")


def test_factors_are_loaded_before_the_calls_and_nothing_is_stored_between() -> None:
    """A thread has two rows of a warpgroup's tile, so it loads two scales while the tensor cores run."""
    plan = by_the_nest(SCALED.replace("S[p // g, j]", "S[p // g, j // 64]"), "nvidia-h200", "real")
    assert [p.title.split(":")[0] for p in plan.parts] == ["C"]
    rows = plan.space.values(ids := plan.space.thinned(200, np.random.default_rng(0)))
    fed = np.flatnonzero((rows["copy"] == BULK) & (rows["roles"] == PRODUCER))
    text = print_cuda(lower(plan, plan.space.schedule(int(ids[fed[0]]))), plan.target).text
    loop = text[text.rindex("// slices of C") :]
    assert "C_group" not in text
    steps = [loop.index(step) for step in ("factor[", "group_begin", "group_wait<0>", "+ partial[")]
    assert steps == sorted(steps)


@pytest.mark.slow
def test_overflow_is_looked_for_but_at_real() -> None:
    flagged = {level: "C_as_written" in by_the_nest(SCALED, "nvidia-h200", level).program.tensors for level in
               ("rescaled", "real")}  # fmt: skip
    assert flagged == {"rescaled": True, "real": False}


@pytest.mark.slow
def test_random_programs_are_right() -> None:
    """`python -m tests.fuzz.added --programs 500` looks at more of them."""
    count, wrong = search(0, 20)
    assert not wrong, wrong
    assert count["programs with groups"] >= 3
