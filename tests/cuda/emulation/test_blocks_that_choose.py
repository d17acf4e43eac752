"""Blocks of a GPU's grid for which data choose a slice: the weights of an expert, a page of keys, rows that count."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cuda.emulation.test_block_chains import check
from support.cards.block_chains import A100, CATALOGUE, H200, RTX
from support.match.agreement import disagreement, expect
from support.programs.chosen import CHOSEN, chosen_plans, random_choice

from autosched.codegen.cuda import print_cuda
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Chosen, For
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.families import family_of
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.gpu.operands.slice_copies import BULK

EXPERTS = Path(__file__).parents[3] / "examples" / "fused" / "experts.py"
MIDDLE = """
def matmul_experts_middle(X: f16[m, k], W: const[f16[k, experts, n]], E: s32[b], Y: f32[m, n],
                          *, m=128, n=64, k=64, b=2, experts=3):
    assume(0 <= E <= experts - 1)
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += f32(X[i, p]) * f32(W[p, E[i // 64], j])
"""
"""Weights whose experts are neither the first nor the last subscript."""
CASES = {
    "contiguous mma": ("contiguous", A100, {"m": 60, "n": 24, "k": 40, "experts": 5, "block": 20, "t": "f16"}),
    "masked mma": ("masked", RTX, {"m": 32, "n": 32, "k": 32, "experts": 3, "t": "bf16"}),
    "contiguous wgmma": ("contiguous", H200, {"m": 128, "n": 64, "k": 64, "experts": 4, "block": 64, "t": "f16"}),
    "middle wgmma": ("middle", H200, {}),
}
ROLE_LABELS = ("together", "producer")
KINDS = [pytest.param(name, marks=() if name in ("experts", "lengths") else pytest.mark.slow) for name in CHOSEN]


@cache
def machine(name: str) -> Target:
    return dataclasses.replace(load_target(name), cores=3)


@cache
def plan_of(case: str) -> Plan:
    """The plan whose blocks choose."""
    rows, name, sizes = CASES[case]
    text = MIDDLE if rows == "middle" else EXPERTS.read_text()
    program = parse(text, function=f"matmul_experts_{rows}", sizes=sizes)
    found = usable(CATALOGUE, machine(name), "simulator", None)
    return next(
        p for p in plan_program(program, machine(name), CATALOGUE, found).every if family_of(p) == "chosen slices"
    )


@pytest.mark.sampled("contiguous mma")
@pytest.mark.parametrize("case", CASES)
def test_products_of_chosen_slices_are_on_instructions(case: str) -> None:
    plan = plan_of(case)
    assert "mma" in plan.name
    rows = [int(r) for r in plan.space.thinned(2, np.random.default_rng(0))]
    for row in rows:
        kernel = lower(plan, plan.space.schedule(row))
        assert any(isinstance(s, Chosen) for s in kernel.statements)
    check(plan, rows, case.replace(" ", "_"))


@pytest.mark.slow
@pytest.mark.parametrize("roles", ROLE_LABELS)
@pytest.mark.parametrize("case", ["contiguous wgmma", "middle wgmma"])
def test_chosen_slices_come_by_tma(case: str, roles: str) -> None:
    """The nest is all that blocks compute: its blocks are the grid's, and its windows have boxes, within tensors."""
    plan = plan_of(case)
    rows = [int(r) for r in plan.space.sample(300, np.random.default_rng(0))]
    wanted = {"copy": BULK, "roles": ROLE_LABELS.index(roles)}
    found = [r for r in rows if all(wanted.get(n.rpartition(".")[2], v) == v for n, v in values_of(plan, r).items())]
    kernel = lower(plan, plan.space.schedule(found[0]))
    blocks = [s for s in kernel.statements if isinstance(s, For) and s.kind.startswith("block.")]
    assert len(blocks) > 1
    check(plan, found[:2], f"tma_{case[:6]}_{roles}")


def values_of(plan: Plan, row: int) -> dict[str, int]:
    return dict(plan.space.schedule(row).values)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_choice(name: str) -> None:
    """Some choose for blocks of the grid, others have bodies that gather what data choose."""
    for plan in chosen_plans(CHOSEN[name], machine(A100)):
        ids = plan.space.sample(2, np.random.default_rng(len(name)))
        assert disagreement(plan, ids.tolist(), expect(CHOSEN[name])) is None


@pytest.mark.slow
def test_random_choices() -> None:
    made = 0
    for seed in range(40):
        program = parse(random_choice(seed), filename="f.py")
        for plan in chosen_plans(program, machine((A100, RTX, H200)[seed % 3])):
            ids = plan.space.sample(2, np.random.default_rng(seed))
            assert disagreement(plan, ids.tolist(), expect(program, seed)) is None, seed
            made += 1
    assert made > 20


def test_a_choice_outside_reads_the_nearest_slice() -> None:
    plan = plan_of("contiguous mma")
    kernel = lower(plan, plan.space.schedule(int(plan.space.thinned(1, np.random.default_rng(0))[0])))
    assert "_wanted < 0 ? 0 : " in print_cuda(kernel, plan.target).text
    rng = np.random.default_rng(0)
    given = {n: t for n, t in plan.program.tensors.items() if n in "XW"}
    data = {n: rng.integers(-2, 3, t.extents).astype(t.dtype.numpy) for n, t in given.items()}
    found = [run_kernel(kernel, data | {"E": np.array(e, np.int32)})["Y"] for e in ((-7, 99, 4), (0, 4, 4))]
    np.testing.assert_array_equal(*found)
