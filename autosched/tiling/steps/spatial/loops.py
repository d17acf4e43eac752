"""The loops of a nest on an accelerator with scratchpads, and the names of what is decided on them."""

from __future__ import annotations

from itertools import permutations

from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Handle

ORDER = Handle("order")


def spatial_loops(nest: Nest) -> tuple[NestAxis, ...]:
    """The axes with a loop over blocks: up to two of the output, then the reduction's."""
    return (*tiled_axes(nest)[-2:], *((nest.depth,) if nest.depth else ()))


def spatial_orders(nest: Nest) -> tuple[tuple[NestAxis, ...], ...]:
    """The orders of the loops over blocks, outermost first; a row's `order` is a place here."""
    return tuple(permutations(spatial_loops(nest)))


def trips_name(names: StepNames, axis: NestAxis) -> str:
    return names(f"trips_{axis.name}")


def resident_name(names: StepNames, operand: str) -> str:
    return names(f"resident_{operand}")


def slots_name(names: StepNames, operand: str) -> str:
    return names(f"slots_{operand}")


def kept_level(nest: Nest, order: tuple[NestAxis, ...]) -> int:
    """How many loops are outside all that belong to the reduction: accumulators are started and stored there."""
    return order.index(nest.depth) if nest.depth in order else len(order)


def tile_loops(nest: Nest) -> tuple[NestAxis, ...]:
    """The axes of the loops over tiles inside a block, outermost first. Those that move no state are innermost, so that
    one load of a state serves all of their tiles; where there is none the reduction is, behind the output's axes."""
    blocked = spatial_loops(nest)
    pair = tuple(a for a in blocked if a is not nest.depth)
    others = tuple(a for a in nest.reduction if a is not nest.depth)
    axes = (*pair, *others, *((nest.depth,) if nest.depth else ()))
    moved = [nest.operand_axes(o.name) for o in nest.intrinsic.held]
    return tuple(sorted(axes, key=lambda a: -sum(a in own for own in moved)))
