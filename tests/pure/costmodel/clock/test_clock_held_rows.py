"""The clock of rows that warps or warpgroups hold: who computes them, and what the compiler computes."""

from __future__ import annotations

import numpy as np
import pytest
from support.cards.block_chains import A100, CATALOGUE, F16, H200, BlockChain
from support.programs.block_chains import CHAINS

from autosched import ir
from autosched.costmodel.analytic.clock import clock, timed_parts
from autosched.costmodel.analytic.gpu.within_block import InRegisters
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.tied_groups import settled
from autosched.tiling.steps.gpu.bodies.held_rows import (
    EACH_ITERATION,
    FETCHED,
    LATER,
    RESIDENT,
    ROWS,
    WHEN_NEEDED,
    WITH_PRODUCT,
)
from autosched.tiling.steps.gpu.operands.operand_sources import GLOBAL, SHARED

SIZES = {"h": 1, "n": 128, "l": 128, "d": 64, "tile": 64, "block": 64}
FLASH = {machine: BlockChain("flash", machine, F16 | SIZES) for machine in (A100, H200)}


def held(plan: Plan) -> list[InRegisters]:
    found = (t.held for t in timed_parts(plan) if t.around)
    return [h for h in found if h is not None and h.issued is not None]


@pytest.mark.parametrize(("machine", "warps"), [(A100, 1), (H200, 4)])
def test_a_warpgroup_is_four_warps(machine: str, warps: int) -> None:
    """They issue as many operations in a quarter of the time, until a core has no more schedulers."""
    case = FLASH[machine]
    rows = held(case.plan)
    assert rows
    assert {row.warps for row in rows} == {warps}
    terms = {"compute": np.ones(3), "total": np.ones(3)}
    for row in rows:
        values = {row.handle: np.array([0, 1, 2]), row.rows.loops.names(RESIDENT.name): np.zeros(3)}
        none, one, two = row.apply(terms, values, case.machine)["total"]
        assert none == 1
        assert (one == two) == (warps == 4)


def test_what_comes_ahead_costs_no_wait() -> None:
    """Slices that come while an iteration before computes; a product beside rows; blocks of a core in turns."""
    case = BlockChain("flash", H200, F16 | SIZES | {"n": 256, "tile": 128})
    space = case.plan.space
    decisions = {d.name.rsplit(".", 1)[-1]: n for n, d in enumerate(space.decisions)}
    position = decisions[ROWS.name]
    asked = {position: space.decisions[position].domain.index(2)}

    def seconds(**values: int) -> float:
        digits = {decisions[n]: space.decisions[decisions[n]].domain.index(v) for n, v in values.items()}
        wanted = asked | digits
        inner = settled(space, [*wanted], [*wanted.values()])
        rows = [space.row_of(inner.schedule(int(r)).values) for r in inner.thinned(64, np.random.default_rng(0))]
        return float(clock(case.plan, space.values(np.array(rows)))["total"].min())

    waiting, fetched, beside = (seconds(ahead=n) for n in (WHEN_NEEDED, FETCHED, WITH_PRODUCT))
    assert beside < fetched < waiting
    assert seconds(ahead=FETCHED, resident=2) < seconds(ahead=FETCHED, resident=0)
    assert seconds(ahead=FETCHED, meeting=LATER) < seconds(ahead=FETCHED, meeting=EACH_ITERATION)


def test_fragments_straight_from_memory_are_waited_for_in_each_iteration() -> None:
    """Of keys and values, of which each iteration has others: queries stay in registers."""
    case = FLASH[A100]
    found = [t.held for t in timed_parts(case.plan) if t.around]
    products = [h for h in found if h is not None and h.issued is None]
    assert len(products) == 2
    latency = next(m.latency_s for m in case.machine.memories if m.name == "L2")
    for product in products:
        (name,) = product.loaded
        assert name.endswith("stage_b")
        values = {product.handle: np.ones(2), product.rows.loops.names(RESIDENT.name): np.zeros(2)}
        terms = {"mma": np.ones(2), "total": np.ones(2)}
        straight, staged = product.apply(terms, values | {name: np.array([GLOBAL, SHARED])}, case.machine)["total"]
        assert straight - staged == pytest.approx(latency)


def test_numbers_of_the_text_cost_nothing() -> None:
    """`rsqrt(16.0)` is one number, which was counted as a call for each element."""
    case = FLASH[H200]
    text = CHAINS["flash"]
    assert text.count("* 0.25") == 2
    found = usable(CATALOGUE, case.machine, "simulator", None)
    called = ir.parse(text.replace("* 0.25", "* rsqrt(acc(16.0))"), sizes=case.sizes)
    plan = next(p for p in plan_program(called, case.machine, CATALOGUE, found).plans if held(p))
    assert [row.issued for row in held(plan)] == [row.issued for row in held(case.plan)]
