"""Operands that are computed in the load, once for several register tiles: the first tile leaves them in the first
cache, from which the others load them.

    for each lane tile:    row tile 0: compute B, leave it, multiply      row tiles 1, 2 …: load B, multiply

The code is in `codegen/lower/common/operands/left_behind.py`.
"""

from __future__ import annotations

from autosched.logic import TRUE, Int, Var, all_of, any_of, where
from autosched.machine.target import Target
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.cpu.copy_granularity import first_cache_bytes
from autosched.tiling.steps.cpu.loop_order import INNER

EACH_TILE, ONCE = 0, 1
LABELS = ("in each tile", "by the first tile for all")
CACHE_SHARE = 2
"""What is left behind may fill one part in so many of the first cache (128 x 32 floats beside what streams, Emerald
Rapids: `docs/experiments/narrow-weights.md`)."""


def once_of(operand: str) -> Handle:
    """Which of several tiles compute the operand."""
    return Handle(f"once_{operand}", EACH_TILE)


@of_nest
def sharing_axis(nest: Nest, operand: str) -> NestAxis | None:
    """The blocked axis whose tiles take the same elements of the operand; None where there is none, or where tiles may
    differ in what they visit of the depth: guards cut it, or there are loops beside it."""
    lanes, rows, depth = blocked_axes(nest)
    mine = nest.operand_axes(operand)
    alone = depth is not None and depth is nest.depth and nest.reduction == (depth,) and depth in mine
    if not alone or lanes is None or rows is None or nest.guard != TRUE or nest.bounds != TRUE:
        return None
    apart = [a for a in (lanes, rows) if a not in mine]
    return apart[0] if len(apart) == 1 else None


def computed_once(nest: Nest, operand: str, target: Target, names: StepNames) -> Step | None:
    """`once_x`, and when the first tile may compute the operand for all. None where no tile could use what another one
    computed."""
    shared = sharing_axis(nest, operand)
    if shared is None or shared.full_units < 1 or shared.units < 2:
        return None
    lanes, _, depth = blocked_axes(nest)
    assert depth is not None
    block, most = Var(names.block(depth)), first_cache_bytes(target) // CACHE_SHARE
    o = nest.intrinsic.operands[operand]
    size: Int = where(block.eq(0), depth.units, block) * (o.elements * o.dtype.bytes)
    for axis in tiled_axes(nest):
        if axis in nest.operand_axes(operand):
            size = size * Var(names.register(axis))
    name = names(once_of(operand).name)
    inner, tiles, around = names.var(INNER.name), Var(names.tiles(shared)), Var(names.block(shared))
    one_block = around.eq(0) | (around >= tiles)
    together = all_of(tiles >= 2, one_block, inner.eq(1 if shared is lanes else 0))
    fits = all_of(together, names.var("threads").eq(1), size <= most)
    sentence = (
        f"one tile computes {operand} for those behind it along {shared.name} only where their loop is innermost, in "
        f"one block, on one thread, and what it leaves takes at most {most} bytes, not {{bytes}}"
    )
    rule = Rule(name, any_of(Var(name).eq(EACH_TILE), fits), sentence, {"bytes": size})
    return Step(name, (Decision(name, (EACH_TILE, ONCE), LABELS),), (rule,))
