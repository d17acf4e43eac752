"""Operand sources: from where an instruction's operands come, and in which slices of the depth a block copies those
that go through shared memory."""

from __future__ import annotations

from math import prod

from autosched.logic import Const, Int, Var, all_of, ceil_div, minimum
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.operands.operand_paths import depth_slices

GLOBAL, SHARED, DESCRIPTOR = 0, 1, 2
LABELS = ("global", "shared", "descriptor")
"""Straight from the tensor into registers; through shared memory into registers; by the instruction itself, from shared
memory."""
FACTORS = (1, 2, 4)
BODY_LIMIT = 256
"""Instructions in one unrolled body: beyond this the instruction cache of an SM misses."""


def stage_of(operand: str) -> Handle:
    """How the operand comes to its instruction."""
    return Handle(f"stage_{operand}", GLOBAL)


def stage_name(names: StepNames, operand: str) -> str:
    return names(stage_of(operand).name)


def sources(nest: Nest, operand: str, target: Target) -> tuple[int, ...]:
    """The sources that an operand may have, the plainest first."""
    fetched = nest.intrinsic.shared_memory
    if operand in fetched:
        return (DESCRIPTOR,) if fetched[operand] else (DESCRIPTOR, SHARED)
    # Elements that several steps of a tile read have no slices of their own, and slices hold zeros past the end, which
    # are no numbers that differ.
    if operand in nest.intrinsic.windows or nest.intrinsic.operands[operand].distinct:
        return (GLOBAL,)
    shared = target.limits.get("shared_bytes", 0) and nest.depth in nest.operand_axes(operand)
    return (GLOBAL, SHARED) if shared else (GLOBAL,)


def staged(nest: Nest, names: StepNames) -> dict[str, Int]:
    """For each input 1 where it goes through shared memory, else 0."""
    return {o.name: minimum(1, Var(stage_name(names, o.name))) for o in nest.intrinsic.inputs}


def gpu_stage(nest: Nest, target: Target, names: StepNames) -> Step:
    """`stage_a`: the source of an operand; `block_k`: depth units of one slice; `unroll`: depth units a trip,
    where nothing is staged (the loop over a slice is short, and compilers unroll it).

    Derived: `staged` (operands that go through shared memory), `slices` of the whole reduction.
    """
    depth = nest.depth
    if depth is None:
        return Step("gpu stage", (), (), {names("staged"): Const(0), names("slices"): Const(1)})
    block, factor = Var(names.block(depth)), Var(names("unroll"))
    decisions: list[Decision] = []
    count: Int = Const(0)
    for operand, is_staged in staged(nest, names).items():
        kinds = sources(nest, operand, target)
        held = DESCRIPTOR if DESCRIPTOR in kinds else None
        decisions.append(Decision(stage_name(names, operand), kinds, tuple(LABELS[k] for k in kinds), held=held))
        count = count + is_staged
    decisions.append(Decision(block.name, depth_slices(depth)))
    decisions.append(Decision(factor.name, tuple(f for f in FACTORS if f <= max(1, depth.full_units)), held=1))
    any_staged = count > 0
    divides = all_of((Const(depth.full_units) % factor).eq(0), any_staged.implies((block % factor).eq(0)))
    body = names("body_issues")
    rules = (
        Rule(names("unroll"), divides, "unroll {" + factor.name + f"}} does not divide the {depth.name} loop"),
        Rule(body, Var(body) <= BODY_LIMIT, "{" + body + f"}} instructions in one loop body > {BODY_LIMIT}"),
    )
    others = prod(a.units for a in nest.reduction if a is not depth)
    derived = {
        names("staged"): count,
        body: Var(names("accumulators")) * factor,
        names("slices"): others * ceil_div(depth.units, block),
    }
    inert = {block.name: Var(names("staged")).eq(0), factor.name: any_staged}
    return Step("gpu stage", tuple(decisions), rules, derived, inert)
