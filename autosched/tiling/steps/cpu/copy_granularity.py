"""Copies of a part of a tensor at a time: those with a border, and interleaved ones, that the loops around the blocks
cut along whole dimensions (images of a batch, channels that are convolved each by itself).

A copy of everything goes through the caches twice before it is used; one of a channel is used while the first cache
still holds it. The code is in `codegen/lower/common/operands/padded_copy.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from autosched.logic import Bool, Int, Var, free_vars
from autosched.machine.target import Target
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.common.layout import tensor_elements
from autosched.tiling.steps.cpu.block_panel import outer_axes
from autosched.tiling.steps.cpu.outer_tile_order import AROUND, line_axis

WHOLE, EACH_PART = 0, 1
DEFAULT_L1 = 32 << 10


@of_nest
def part_axes(nest: Nest, operand: str) -> Mapping[int, NestAxis]:
    """Dimensions of an operand's tensor to the axes, with loops around the blocks, whose positions they are: outermost
    first, and no other loop between or around them. Not the last dimension, along which vectors are copied."""
    index = nest.mapping.operands[operand].index
    used = [free_vars(part) if isinstance(part, Int) else frozenset() for part in index]
    found: dict[int, NestAxis] = {}
    for axis in (a for a in outer_axes(nest) if a.units > 1):
        (name, low, _), *others = axis.members
        dims = [d for d, names in enumerate(used) if name in names]
        if others or low or len(dims) != 1 or index[dims[0]] != Var(name) or dims[0] == len(index) - 1:
            break
        found[dims[0]] = axis
    return found


def first_cache_bytes(target: Target) -> int:
    """Bytes of the first level of cache."""
    return next((m.bytes for m in target.memories if m.name == "L1"), DEFAULT_L1)


def copy_of(operand: str) -> Handle:
    """How much of the operand's tensor a copy holds at a time."""
    return Handle(f"copy_{operand}", WHOLE)


def copy_granularity(nest: Nest, operand: str, copies: Bool, target: Target, names: StepNames) -> Step | None:
    """`copy_x`: the whole tensor before the nest, or a part of it in each iteration of the loops that `part_axes`
    names; no effect but where the operand is copied at all (`copies`). None where nothing can be cut, or all of it
    stays in the first cache anyway."""
    first = first_cache_bytes(target)
    size = tensor_elements(nest, operand) * nest.intrinsic.operands[operand].dtype.bytes
    axes = part_axes(nest, operand)
    if not axes or size <= first:
        return None
    column = names(copy_of(operand).name)
    label = f"each {'.'.join(a.name for a in axes.values())}"
    rules: tuple[Rule, ...] = ()
    if line_axis(nest) in axes.values():
        around = Var(column).eq(WHOLE) | Var(names("lines")).eq(AROUND)
        rules = (Rule(column, around, f"{{{column}}}: copied in parts, but lines run within a block"),)
    return Step(column, (Decision(column, (WHOLE, EACH_PART), ("whole", label)),), rules, inert={column: ~copies})
