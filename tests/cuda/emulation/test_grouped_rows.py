"""Heads that share keys and values as rows of one product (plans `[grouped rows]`): a tile holds those of a group."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from support.cards.block_chains import several
from support.cards.checked_kernels import checked
from support.cards.gpu_plans import CATALOGUE
from support.cards.hand_kernels import needs_compiler

from autosched.ir.workload import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.families import ADAPTED, PARTS
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.find_warp_rows import rows_inside
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.plans.warp_rows import WarpRows
from autosched.tiling.steps.gpu.bodies.held_rows import AHEAD, ROWS, WITH_PRODUCT
from autosched.tiling.variants.grouped_rows import GROUPS

pytestmark = [needs_compiler, pytest.mark.compiler]

MMA, WGMMA = ("cuda/mma.m16n8k16.*",), ("cuda/wgmma.m64n8k16*",)
CASES = {
    "mma": ("nvidia-a100", MMA, {"h": 4, "l": 16, "d": 16, "group": 2, "t": "f16"}),
    "wgmma": ("nvidia-h200", WGMMA, {"h": 8, "l": 64, "d": 64, "group": 4, "t": "bf16"}),
    "parts": ("nvidia-h200", ("cuda/wgmma.m64n64k16*",), {"h": 8, "l": 256, "d": 64, "group": 4, "t": "bf16"}),
    "three to a group": ("nvidia-h200", WGMMA, {"h": 6, "l": 72, "d": 64, "group": 3, "t": "bf16"}),
}


@cache
def grouped(name: str) -> Plan:
    """The first plan of a case with members of groups apart."""
    return next(p for p in plans_of(name, ADAPTED) if GROUPS in p.name)


def plans_of(name: str, family: str) -> tuple[Plan, ...]:
    target, asked, sizes = CASES[name]
    machine = dataclasses.replace(load_target(target), cores=3)
    program = workload("attention_rounded", n=1, mask="full", **sizes)
    known = usable(CATALOGUE, machine, "simulator", asked)
    return plan_program(program, machine, CATALOGUE, known, numerics="real", families=[family]).plans


@cache
def in_parts() -> tuple[Plan, WarpRows]:
    """A plan with parts of the cache in small blocks, in whose rows are the heads of a group; and what holds them."""
    found = next(p for p in plans_of("parts", PARTS) if "4x64]" in p.name)
    (rows,) = (r for part in found.parts if isinstance(part, TileLoopsPart) for r in rows_inside(part))
    return found, rows


def test_heads_of_a_group_are_rows_that_warps_hold() -> None:
    _, rows = in_parts()
    assert rows.extent == 4
    assert {"S_block", "M_part", "Z_part", "A_part"} <= rows.held.keys()
    assert [p.taken for p in rows.products] == [{}, {"a": "M_term_factor"}]


@pytest.mark.slow
def test_parts_are_right() -> None:
    """In a row whose slices, and whose first product, are an iteration ahead."""
    plan, rows = in_parts()
    held, when = (rows.loops.names(handle.name) for handle in (ROWS, AHEAD))
    drawn = plan.space.sample(2000, np.random.default_rng(0))
    values = plan.space.values(drawn).columns
    fitting = drawn[(values[held] > 0) & (values[when] == WITH_PRODUCT)]
    checked(plan, [int(fitting[0])], "parts")


@pytest.mark.parametrize("name", ["wgmma"])
def test_a_tile_has_the_members_of_a_group(name: str) -> None:
    plan = grouped(name)
    scores, values = plan.tensor_parts
    for part, shared in ((scores, "K"), (values, "V")):
        (operand,) = (o for o, read in part.nest.mapping.operands.items() if read.tensor == shared)
        members = [a for a in part.nest.lanes if a not in part.nest.operand_axes(operand) and not a.reduction]
        assert [a.extent for a in members] == [4]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mma", "wgmma", "three to a group"])
def test_kernels_are_right(name: str) -> None:
    plan = grouped(name)
    checked(plan, several(plan, 1), "grouped")
