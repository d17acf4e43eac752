"""What sets plans apart, whatever the width of their instructions: of those that are alike one is searched first.

    F: vfmadd.zmm(i←o); Y: vfmadd.zmm(i←o)      F: vfmadd.zmm(i←o); Y: vfmadd.ymm(i←o)     alike
    F: vfmadd.zmm(i←o); Y: vfmadd.zmm(i←x)      F: vfmadd.zmm(i←o); Y: … [tiles of 2]      others
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from autosched.tensorize.matcher.family_answer import lane_form
from autosched.tiling.planner.rank import part_cycles, plan_cycles
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Part,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)

NEAR = 1.5
"""Times the cycles of the best plan, up to which the first of its kind is searched before others that are alike."""
HARDLY = 1 / 20
"""Share of a plan's cycles: parts below it set no plans apart."""
T = TypeVar("T")


def different_first(found: Sequence[T], kind: Callable[[T], Hashable], cycles: Callable[[T], float]) -> list[T]:
    """The same, but those up to `NEAR` times the cycles of the first, and unlike all before them, come first."""
    seen: set[Hashable] = set()
    others: list[T] = []
    alike: list[T] = []
    for one in found:
        new = cycles(one) <= NEAR * cycles(found[0]) and kind(one) not in seen
        if new:
            seen.add(kind(one))
        (others if new else alike).append(one)
    return [*others, *alike]


def structure_of(plan: Plan) -> Hashable:
    """Equal for plans that are alike: they are of one program (rewrites and adapters make others), and the parts that
    count are on instructions of one form, with the same axes on the same lanes."""
    whole = plan_cycles(plan)
    counting = [p for p in plan.parts if part_cycles(p, plan) > HARDLY * whole]
    return str(plan.program), tuple(map(_of_part, counting))


def of_nest(nest: Nest | None) -> Hashable:
    """The same for the nests of one stage; None is scalar code."""
    if nest is None:
        return None
    mapping = nest.mapping
    return (
        lane_form(nest.intrinsic) or nest.intrinsic.name,
        nest.intrinsic.scope,
        tuple((a.intrinsic_axis, tuple(m for m, _, n in a.members if n > 1)) for a in nest.axes if a.extent > 1),
        tuple(f"{r.tensor}{r.index}" for r in mapping.operands.values()),
        tuple(c.text for c in (*mapping.conditions, *mapping.assumed)),
        tuple(c.title for c in nest.computed.values()),
        nest.groups and nest.groups.title,
    )


def _of_part(part: Part) -> Hashable:
    match part:
        case TensorPart():
            return of_nest(part.nest), tuple(s.name for s in part.computed_stages)
        case ScalarPart():
            return "scalar", part.stage.name
        case FusedLoopsPart():
            return "fused loops", part.shared, tuple(m.stage.name for m in part.members)
        case WarpCooperativePart():
            return "warps", part.across, tuple(m.name for m in part.members)
        case LiteralPart():
            return "literal", part.stages
        case TileLoopsPart():
            return tuple(t.axis.name for t in part.loops), structure_of(part.member)

