"""Staging in shared memory: which operands a block copies, slice of the depth by slice, before it is used."""

from __future__ import annotations

from autosched.logic import Const, Int, Var, all_of, any_of
from autosched.machine.target import Target
from autosched.tiling.nest import Nest
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.gpu_tile import gpu_pair
from autosched.tiling.steps.names import StepNames

GLOBAL, SHARED = 0, 1
LABELS = ("global", "shared")
SLICE_ELEMENTS = (16, 32, 64, 128)
FACTORS = (1, 2, 4)
BODY_LIMIT = 256
"""Instructions in one unrolled body: beyond this the instruction cache of an SM misses."""


def stage_name(names: StepNames, operand: str) -> str:
    return names(f"stage_{operand}")


def gpu_stage(nest: Nest, target: Target, names: StepNames) -> Step:
    """`stage_a`: from where workers read an operand; `block_k`: depth units of one slice; `unroll`: depth units a trip.

    Derived: `shared_bytes` of one block.
    """
    depth, pair = nest.depth, gpu_pair(nest)
    if depth is None:
        return Step("gpu stage", (), (), {names("shared_bytes"): Const(0)})
    limit = target.limits.get("shared_bytes", 0)
    block, factor = Var(names.block(depth)), Var(names("unroll"))
    decisions: list[Decision] = []
    total: Int = Const(0)
    for operand in nest.intrinsic.inputs:
        stage = Var(stage_name(names, operand.name))
        kinds = (GLOBAL, SHARED) if limit and depth in nest.operand_axes(operand.name) else (GLOBAL,)
        decisions.append(Decision(stage.name, kinds, tuple(LABELS[k] for k in kinds)))
        size: Int = block * operand.elements * operand.dtype.bits // 8
        for axis in pair:
            if axis in nest.operand_axes(operand.name):
                size = size * Var(names(f"tile_{axis.name}"))
        total = total + stage * size
    sizes = sorted({max(1, n // depth.unit) for n in SLICE_ELEMENTS})
    slices = tuple(n for n in sizes if n <= depth.units) or (1,)
    decisions.append(Decision(block.name, slices))
    decisions.append(Decision(factor.name, tuple(f for f in FACTORS if f <= max(1, depth.full_units))))
    staged = any_of(*(Var(stage_name(names, o.name)).eq(SHARED) for o in nest.intrinsic.inputs))
    divides = all_of((Const(depth.full_units) % factor).eq(0), staged.implies((block % factor).eq(0)))
    body, shared = names("body_issues"), names("shared_bytes")
    rules = (
        Rule(names("unroll"), divides, "unroll {" + factor.name + f"}} does not divide the {depth.name} loop"),
        Rule(body, Var(body) <= BODY_LIMIT, "{" + body + f"}} instructions in one loop body > {BODY_LIMIT}"),
        Rule(shared, Var(shared) <= limit, "{" + shared + f"}} bytes of shared memory in a block > {limit:,}"),
    )
    derived = {body: Var(names("accumulators")) * factor, shared: total}
    return Step("gpu stage", tuple(decisions), rules, derived, {block.name: ~staged})
