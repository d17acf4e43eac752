"""How often a state is loaded: an input that stays in the array from one load to the next (`Operand.state`).

It is loaded as far out as it stays the same: inside the innermost loop that moves it and runs more than once. Blocks
and their order decide which loop that is; loops over tiles inside a block that do not move it are innermost
(`loops.tile_loops`).
"""

from __future__ import annotations

from autosched.logic import Bool, Const, Int, Var, all_of, any_of
from autosched.logic.expr import where
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps.spatial.loops import ORDER, spatial_loops, spatial_orders, tile_loops, trips_name


def loads_name(names: StepNames, operand: str) -> str:
    return names(f"loads_{operand}")


def loads_of(nest: Nest, operand: str, names: StepNames) -> Int:
    """Loads of the state that holds an input: the trips of all loops down to the innermost one that moves it."""
    own, tiles = nest.operand_axes(operand), tile_loops(nest)
    order, orders = Var(names(ORDER.name)), spatial_orders(nest)
    in_a_block = any_of(*(_several(nest, a, names) for a in tiles if a in own))
    total: Int = Const(1)
    for axis in nest.spatial:
        if axis not in spatial_loops(nest):  # the loops outside of all blocks
            total = total * axis.units
    for place, axis in enumerate(tiles):
        further = any_of(*(_several(nest, a, names) for a in tiles[place:] if a in own))
        if axis not in spatial_loops(nest):
            total = total * where(further, axis.units, 1)
            continue
        trips = Var(trips_name(names, axis))
        inside = (o[o.index(axis) :] for o in orders)
        moved = (any_of(*(Var(trips_name(names, a)) > 1 for a in rest if a in own)) for rest in inside)
        reached = any_of(in_a_block, *(all_of(order.eq(k), m) for k, m in enumerate(moved)))
        total = total * where(further, axis.units, where(reached, trips, 1))
    return total


def _several(nest: Nest, axis: NestAxis, names: StepNames) -> Bool:
    """Whether a block has several tiles along an axis."""
    return Var(names.block(axis)) > 1 if axis in spatial_loops(nest) else Const(axis.units) > 1
