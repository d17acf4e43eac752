"""Blocks of a grid that take unequally long: which loop says so, and what an order of blocks is worth."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from support.cards.gpu_plans import CATALOGUE
from support.programs.block_chains import CHAINS

from autosched import ir
from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.space.tied_groups import settled
from autosched.tiling.steps.gpu.bodies.uneven_grid import AS_WRITTEN, LONGEST_FIRST, uneven_grid

SIZES = {"n": 512, "l": 512, "d": 32, "tile": 64, "block": 64, "t": "f16"}


@cache
def plan_of(chain: str) -> Plan:
    target = dataclasses.replace(load_target("nvidia-a100"), cores=3)
    found = usable(CATALOGUE, target, "simulator", None)
    planned = plan_program(ir.parse(CHAINS[chain], sizes=SIZES), target, CATALOGUE, found)
    return next(p for p in planned.plans if any(isinstance(q, TileLoopsPart) and q.grid for q in p.parts))


def test_a_causal_mask_makes_a_grid_uneven() -> None:
    plan = plan_of("causal")
    (part,) = (p for p in plan.parts if isinstance(p, TileLoopsPart))
    grid = uneven_grid(part)
    assert grid is not None
    assert (grid.loop.axis.name, grid.lengths, grid.rises) == ("i_tile", (1, 2, 3, 4, 5, 6, 7, 8), True)
    assert next(d.domain for d in plan.space.decisions if d.name.endswith(".order")) == (LONGEST_FIRST, AS_WRITTEN)


def test_other_grids_have_no_order() -> None:
    plan = plan_of("flash")
    assert all(uneven_grid(p) is None for p in plan.parts if isinstance(p, TileLoopsPart))
    assert not any(d.name.endswith(".order") for d in plan.space.decisions)


@pytest.mark.parametrize("order", [LONGEST_FIRST, AS_WRITTEN])
def test_the_longest_begin_first(order: int) -> None:
    """The loop that says how long blocks take goes on slowest, from its end: which the clock takes for quicker."""
    plan = plan_of("causal")
    (position,) = (n for n, d in enumerate(plan.space.decisions) if d.name.endswith(".order"))
    digit = plan.space.decisions[position].domain.index(order)
    inner = settled(plan.space, [position], [digit])
    row = plan.space.row_of(inner.schedule(int(inner.thinned(1, np.random.default_rng(0))[0])).values)
    text = print_cuda(lower(plan, plan.space.schedule(row)), plan.target).text
    assert ("j_block < (8 - i_tile)" in text) == (order == LONGEST_FIRST)
    other = next(
        plan.space.row_of({**plan.space.schedule(row).values, plan.space.decisions[position].name: value})
        for value in plan.space.decisions[position].domain
        if value != order
    )
    here, there = clock(plan, plan.space.values(np.array([row, other])))["total"]
    assert (here < there) == (order == LONGEST_FIRST)
