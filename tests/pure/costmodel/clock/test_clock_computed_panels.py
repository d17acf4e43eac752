"""What the clock says of operands that are computed while a panel is filled."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import machine

from autosched.costmodel.analytic.clock import clock, floors, parts
from autosched.costmodel.analytic.cpu.copies import computing_cycles, width
from autosched.costmodel.analytic.cpu.scalar_cycles import CALL_CYCLES, PER_CYCLE, formula_cycles
from autosched.ir import parse
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

GATED = """
def gated(G: {t}[m, k], H: {t}[m, k], D: const[{t}[k, n]], Y: {t}[m, n], *, m=96, k=2048, n=768):
    P: {t}[m, k]
    for i, j in grid(m, k):
        P[i, j] = {value}
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += P[i, p] * D[p, j]
"""


def packing(value: str, t: str = "f32") -> list[tuple[Plan, str]]:
    """The plans that compute P while they fill panels, and the operand."""
    target, known = machine(), Catalogue.builtin()
    program = parse(GATED.format(value=value, t=t))
    found = plan_program(program, target, known, usable(known, target, "cpu", (f"x86/vfmadd.{t}.zmm",)))
    inside = [p for p in found.every if p.name.endswith("P in packing")]
    return [(p, name) for p in inside for t in p.tensor_parts for name in t.nest.computed]


@pytest.fixture(scope="module")
def gated() -> list[tuple[Plan, str]]:
    return packing("G[i, j] * sigmoid(G[i, j]) * H[i, j]")


def test_a_formula_takes_its_steps_for_each_register(gated: list[tuple[Plan, str]]) -> None:
    """One whose element is splat holds one element."""
    widths = set()
    for plan, operand in gated:
        (nest,) = (t.nest for t in plan.tensor_parts)
        own = plan.formulas["sigmoid", "f32"]
        assert computing_cycles(nest, operand, plan.formulas) == 3 / PER_CYCLE + formula_cycles(own)
        widths.add(width(nest, operand))
    assert widths == {1, 16}


def test_splat_elements_cost_more_than_vectors(gated: list[tuple[Plan, str]]) -> None:
    pack: dict[int, float] = {}
    for plan, operand in gated:
        (part,) = plan.tensor_parts
        values = plan.space.values(plan.space.few)
        pack[width(part.nest, operand)] = float(clock(plan, values)["pack"].min())
    own = gated[0][0].formulas["sigmoid", "f32"]
    steps = formula_cycles(own) / machine().clock_hz
    assert pack[1] > 96 * 2048 * steps
    assert pack[1] > 4 * pack[16]


def test_a_library_is_called_for_each_element() -> None:
    found = packing("log(G[i, j])", "f64")
    assert found
    for plan, operand in found:
        (nest,) = (t.nest for t in plan.tensor_parts)
        assert computing_cycles(nest, operand, plan.formulas) == 1 / PER_CYCLE + CALL_CYCLES * width(nest, operand)


def test_floors_stay_below(gated: list[tuple[Plan, str]]) -> None:
    for plan, _ in gated:
        values = plan.space.values(plan.space.thinned(100, np.random.default_rng(0)))
        for least, exact in zip(floors(plan), parts(plan), strict=True):
            assert (least(values) <= exact(values) * (1 + 1e-6)).all()
