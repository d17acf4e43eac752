"""Unrolling of the depth loop inside the register tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from autosched.logic import Const, Var, all_of
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.common.computed import PAIR, group_units, loaded, sources
from autosched.tiling.steps.common.register_tile import register_limit
from autosched.tiling.steps.cpu.cache_block import depth_blocks, read_once
from autosched.tiling.steps.cpu.shared_loads import offered
from autosched.tiling.steps.cpu.skip_guarded import skipping_row

FACTORS = (1, 2, 4)
WHOLE = 8
"""A depth of so many units at most (a line of a window) may be unrolled whole."""
BODY_LIMIT = 160
"""Instructions of one unrolled body: beyond this a kernel takes longer to build and outgrows the micro-op cache."""
UNROLL = Handle("unroll", 1)


def unroll(nest: Nest, target: Target, names: StepNames) -> Step:
    """`unroll` depth units a trip. It must divide the block and the full units of the axis, so no remainder loop. Where
    words of a narrow panel have more than two elements a trip has a word's, so that each stands at a known place.

    Products of registers that hold matrices take many cycles each, and a trip has one unit: with two and four units
    products of bf16 took 0.98 to 1.01 of the time on a core with AMX, products of bytes 1.01 to 1.12."""
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
    if nest.intrinsic.matrices is not None:
        factors = [1]
    return Step(
        "unroll",
        (Decision(factor.name, tuple(factors), held=_held(nest, depth, target, factors)),),
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


def _held(nest: Nest, depth: NestAxis, target: Target, factors: Sequence[int]) -> int:
    """Where it cannot be searched: the largest of `FACTORS` that divides whatever a trip is to divide, so that no other
    decision loses a value. (SwiGLU of f32 96x768x2048 on one Emerald Rapids core: 6.9 ms at 4, 7.7 ms at 1.) The least
    where steps share loads or are skipped: these decisions count the units of a trip, too."""
    if offered(nest, target) or skipping_row(nest) is not None:
        return factors[0]
    blocks = depth_blocks(nest, depth, read_once(nest, target)) if depth is nest.blocked_reduction else ()
    groups = (group_units(nest, o.name) for o in nest.intrinsic.inputs)
    whole = gcd(depth.full_units, *blocks, *(g for g in groups if g > 1))
    most = BODY_LIMIT // register_limit(nest, target)
    return max((f for f in FACTORS if f in factors and f <= most and whole % f == 0), default=factors[0])


def _word(nest: Nest) -> int:
    """The most elements that a word of an operand computed in the load has."""
    computed = (sources(nest, o.name) or () for o in nest.intrinsic.inputs if loaded(nest, o.name))
    return max((s.word for found in computed for s in found if s.joined), default=1)
