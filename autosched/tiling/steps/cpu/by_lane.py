"""Loads that a mask makes lane by lane: no one instruction brings these elements and leaves out those."""

from __future__ import annotations

from math import prod

from autosched.logic import Var
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps.common.layout import scattered
from autosched.tiling.steps.cpu.fills import rounded, runs_on


@of_nest
def asked_by_lane(nest: Nest, operand: str) -> bool:
    """Whether a direct load asks for each lane by itself if its element is real: lanes may lie beyond an axis's end, or
    the operand's condition changes along them, and no masked load brings them."""
    along = _along(nest, operand)
    ragged = any(a.extent % a.unit for a in along if a not in runs_on(nest, operand))
    forms = nest.guarded_sums[operand]
    if not ragged and not any(form is None or any(form.coefficient(a.name) for a in along) for form in forms):
        return False
    return scattered(nest, operand)


@of_nest
def copied_by_lane(nest: Nest, operand: str) -> float:
    """The share of an operand's loads from a copy with a border that ask for each lane by itself: those of the last
    register of a reduction past whose end the operand has to hold its fill."""
    last = [a for a in _along(nest, operand) if a.reduction and a.extent % a.unit]
    ragged = [a for a in last if a not in rounded(nest, operand)]
    whole = prod(a.full_units / a.units for a in ragged)
    return 1.0 - whole if ragged and scattered(nest, operand) else 0.0


def _along(nest: Nest, operand: str) -> list[NestAxis]:
    """Axes that lanes of a register lie along."""
    lanes = nest.lane_coordinates(operand, Var("e"))
    return [a for a in nest.axes if a.unit > 1 and a.intrinsic_axis in lanes]
