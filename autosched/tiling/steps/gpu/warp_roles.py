"""Roles: whether warps of a block of their own fetch slices, while the others only compute."""

from __future__ import annotations

from autosched.logic import Const, Var, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.operands.slice_copies import BULK

TOGETHER, PRODUCER = 0, 1
PRODUCER_WARPS = 4
"""A producer is a warpgroup, since registers are given up by whole warpgroups."""
BARRIER_BYTES = 8
"""Of a stage's barrier: one that says it is full and, beside a producer, one that says it is empty."""
ROLES = Handle("roles", TOGETHER)


def offers_roles(nest: Nest, target: Target) -> bool:
    """Whether slices can be fetched without the workers: by TMA, for instructions of warps and warpgroups.
    Single threads would all have to say that they are done with a slice."""
    return target.bulk_copies and nest.intrinsic.scope in ("warp", "warpgroup")


def gpu_roles(nest: Nest, target: Target, names: StepNames) -> Step:
    """`roles`: all workers copy and compute, or a producer of its own asks TMA for slices. Derived:
    `producer_warps`, `barrier_bytes`."""
    warps, barriers, copy = names("producer_warps"), names("barrier_bytes"), Var(names("copy"))
    full = where(copy.eq(BULK), Var(names("stages")) * BARRIER_BYTES, 0)
    if not offers_roles(nest, target):
        return Step("gpu roles", (), (), {warps: Const(0), barriers: full})
    roles = Var(names(ROLES.name))
    needs = roles.eq(TOGETHER) | copy.eq(BULK)
    ahead = roles.eq(TOGETHER) | (Var(names("stages")) >= 2)
    return Step(
        "gpu roles",
        (Decision(roles.name, (TOGETHER, PRODUCER), ("together", "producer")),),
        (
            Rule(roles.name, needs, "a producer of its own asks TMA, and copies are not TMA"),
            Rule(names("roles_stages"), ahead, "a producer of its own works ahead, and there is one stage"),
        ),
        {warps: roles * PRODUCER_WARPS, barriers: full * (1 + roles)},
        {roles.name: Var(names("staged")).eq(0)},
    )
