"""Fused stages of a register tile: in front, what its sums begin with; behind, what uses them in registers."""

from __future__ import annotations

from collections.abc import Mapping

from autosched.codegen.lower.common.context import Context
from autosched.codegen.tree.kernel import Assign, Lane
from autosched.codegen.tree.rename import place, place_index
from autosched.codegen.tree.update import updated
from autosched.ir.nodes import Assign as Assignment
from autosched.ir.value import Read, Value, map_value
from autosched.logic import Bool, Int
from autosched.tiling.plans.group_sums import GroupSums
from autosched.tiling.plans.plan import Fused


def fused_start(fused: Fused, axes: dict[str, Int], ctx: Context) -> Value:
    """What the stage in front makes of an element; `axes` places the axes of the sums."""
    for read in fused.stage.reads:
        ctx.tensor(read.tensor)
    return place(updated(fused.stage), {own: axes[other] for own, other in fused.axes.items()})


def epilogue(
    fused: Fused,
    produced: Assignment,
    register: Read,
    axes: dict[str, Int],
    lane: Lane | None,
    valid: Bool,
    ctx: Context,
) -> tuple[Assign]:
    """The consumer's assignment for one accumulator register; `axes` places the producer's axes.

    A consumer that updates the produced tensor itself updates the register, which is stored after all of them.
    """
    here = {consumer: axes[producer] for consumer, producer in fused.axes.items()}
    stage = fused.stage
    for read in stage.reads:
        if read.tensor != produced.tensor:
            ctx.tensor(read.tensor)

    def on_read(read: Read) -> Value:
        return register if read.tensor == produced.tensor else read

    value = place(updated(stage), here, on_read)
    if stage.assign.tensor == produced.tensor:
        in_register = tuple(i for i in register.index if isinstance(i, Int))
        return (Assign(register.tensor, in_register, value, lane, valid),)
    ctx.tensor(stage.assign.tensor)
    index = place_index(stage.assign.index, here)
    return (Assign(stage.assign.tensor, index, value, lane, valid),)


def group_added(
    groups: GroupSums, summed: Read, total: Read, kept: Mapping[Value, Value], axes: dict[str, Int], ctx: Context
) -> Value:
    """What `total` is once the sum of a group, in the register `summed`, is added; `axes` places the nest's axes, and
    `kept` has factors in registers."""
    here = _of_adding(groups, axes, ctx)
    registers = {groups.tensor: summed, groups.adding.assign.tensor: total}
    value = place(updated(groups.adding), here, lambda read: registers.get(read.tensor, read))
    # Placed first: axes of the program may have the names of variables by which registers are indexed.
    held = {place(factor, here): register for factor, register in kept.items()}
    return map_value(value, on_value=lambda v: held.get(v, v))


def group_factor(groups: GroupSums, factor: Value, axes: dict[str, Int], ctx: Context) -> Value:
    """A factor of a group's sum; `axes` places the nest's axes."""
    return place(factor, _of_adding(groups, axes, ctx))


def _of_adding(groups: GroupSums, axes: dict[str, Int], ctx: Context) -> dict[str, Int]:
    """Where the axes are of the stage that adds groups up; what it reads becomes part of the kernel."""
    for read in groups.factors:
        ctx.tensor(read.tensor)
    return {own: axes[other] for own, other in groups.axes.items()}
