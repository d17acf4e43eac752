"""Where the loop over tiles of a row axis without blocks runs (the lines of an image, say): around the block loops, or
within a block, so that a panel of weights stays in a cache for all lines."""

from __future__ import annotations

from autosched.logic import TRUE, Var, all_of, any_of
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.cpu.block_panel import BLOCK

AROUND, WITHIN = 0, 1
LINES = Handle("lines", AROUND)


def outer_tile_order(nest: Nest, names: StepNames) -> Step:
    """`lines`: the same where lanes have one block. A panel of one block is filled for one line at a time, so it wants
    the loop around it."""
    axis = line_axis(nest)
    if axis is None:
        return Step("lines")
    column = names(LINES.name)
    mine = [o.name for o in nest.intrinsic.inputs if axis in nest.operand_axes(o.name)]
    whole = all_of(*(Var(names.pack(o)).ne(BLOCK) for o in mine))
    lanes = blocked_axes(nest)[0]
    single = TRUE if lanes is None else Var(names(f"blocks_{lanes.name}")).eq(1)
    return Step(
        "lines",
        (Decision(column, (AROUND, WITHIN), ("around", "within")),),
        (Rule(column, any_of(Var(column).eq(AROUND), whole), "a panel of one block is filled line by line"),),
        inert={column: any_of(Var(names.tiles(axis)).eq(1), single)},
    )


def line_axis(nest: Nest) -> NestAxis | None:
    """The tiled axis without blocks, if there is one with several units."""
    blocked = blocked_axes(nest)
    found = [a for a in tiled_axes(nest) if a not in blocked and a.units > 1]
    return found[0] if len(found) == 1 else None
