"""Unrolling of the depth loop inside the register tile."""

from __future__ import annotations

from autosched.logic import Const, Var, all_of
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.common.computed import PAIR, loaded, sources

FACTORS = (1, 2, 4)
WHOLE = 8
"""A depth of so many units at most (a line of a window) may be unrolled whole."""
BODY_LIMIT = 160
"""Instructions of one unrolled body: beyond this a kernel takes longer to build and outgrows the micro-op cache."""
UNROLL = Handle("unroll", 1)


def unroll(nest: Nest, names: StepNames) -> Step:
    """`unroll` depth units a trip. It must divide the block and the full units of the axis, so no remainder loop. Where
    words of a narrow panel have more than two elements a trip has a word's, so that each stands at a known place."""
    depth = nest.depth
    if depth is None:
        return Step("unroll")
    factor = Var(names(UNROLL.name))
    block = Var(names.block(depth)) if depth is nest.blocked_reduction else Const(0)
    divides = all_of((block % factor).eq(0), (Const(depth.full_units) % factor).eq(0))
    body = names.var("accumulators") * factor
    whole = (depth.full_units,) if 1 < depth.full_units <= WHOLE and depth.full_units == depth.units else ()
    word = _word(nest)
    factors = sorted({f for f in FACTORS if f <= max(1, depth.full_units)} | {*whole}) if word <= PAIR else [word]
    return Step(
        "unroll",
        (Decision(factor.name, tuple(factors), held=factors[0]),),
        (
            Rule(names(UNROLL.name), divides, "unroll {" + factor.name + f"}} does not divide the {depth.name} loop"),
            Rule(
                names("body"),
                Var(names("body_issues")) <= BODY_LIMIT,
                "{" + names("body_issues") + f"}} instructions in one loop body > {BODY_LIMIT}",
            ),
        ),
        {names("body_issues"): body},
    )


def _word(nest: Nest) -> int:
    """The most elements that a word of an operand computed in the load has."""
    computed = (sources(nest, o.name) or () for o in nest.intrinsic.inputs if loaded(nest, o.name))
    return max((s.word for found in computed for s in found if s.joined), default=1)
