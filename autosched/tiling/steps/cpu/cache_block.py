"""Cache blocks: how many register tiles (or depth units) are worked through before the next block is touched."""

from __future__ import annotations

from math import prod

from autosched.logic import Bool, Int, Var, ceil_div, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, blocked_axes
from autosched.tiling.step import Decision, Step
from autosched.tiling.steps.common.register_tile import register_limit
from autosched.tiling.steps.cpu.columns import is_streamed

LANE_TILES = (0, 1, 2, 4, 8)
ROW_TILES = (0, 2, 4, 8, 16)
DEPTH_ELEMENTS = (128, 256, 512)
FEW_ELEMENTS = (8, 32)
"""Of the depth where `read_once`."""


def read_once(nest: Nest, target: Target) -> bool:
    """Whether an operand that nothing reuses may best be read in the order in which it lies, a few of its rows at a
    time: there are no rows around it; or one register tile has all of them, in a quarter of the registers, and what
    comes from memory without them is not constant. (Four rows and f32 4096x4096 on Zen 3: 5.1 ms with 8 rows of the
    matrix at a time, 11 with 128 and more.)"""
    if blocked_axes(nest)[1] is None:
        return True
    if nest.intrinsic.matrices is not None or 4 * prod(a.units for a in nest.rows) > register_limit(nest, target):
        return False
    known = nest.mapping.program.known
    alone = [o.name for o in nest.intrinsic.inputs if not set(nest.rows) & set(nest.operand_axes(o.name))]
    return any(is_streamed(nest, name) and not known(nest.mapping.operands[name].tensor) for name in alone)


def depth_blocks(nest: Nest, axis: NestAxis, few: bool) -> list[int]:
    """Units of one block of the reduction axis that is cut. Where other reductions run inside each of its units (the
    window of a channel), these count too, and blocks are powers of two: 512 elements are 64 channels of a 3x3 window.
    """
    elements = (*(FEW_ELEMENTS if few else ()), *DEPTH_ELEMENTS)
    inside = prod(a.units * a.unit for a in nest.reduction if a is not axis) if axis is not nest.depth else 1
    sizes = {-(-n // (axis.unit * inside)) for n in elements}
    if axis is not nest.depth:
        sizes = {1 << (n - 1).bit_length() for n in sizes}
    return sorted(n for n in sizes if n < axis.units)


def cache_block(nest: Nest, target: Target, names: StepNames) -> Step:
    """`block_x` counts register tiles of x, `block_k` depth units; 0 is the whole axis. Derived: `blocks_x`, how many
    blocks there are. A block as large as its axis is the same as none."""
    lanes, rows, depth = blocked_axes(nest)
    decisions: list[Decision] = []
    derived: dict[str, Int] = {}
    inert: dict[str, Bool] = {}
    for axis, domain in ((lanes, LANE_TILES), (rows, ROW_TILES)):
        if axis is None:
            continue
        block, count = Var(names.block(axis)), Var(names.tiles(axis))
        most = axis.units
        decisions.append(Decision(block.name, tuple(v for v in domain if v < most)))
        derived[names(f"blocks_{axis.name}")] = where(block.eq(0), 1, ceil_div(count, block))
        inert[block.name] = block >= count
    if depth is not None:
        block = Var(names.block(depth))
        decisions.append(Decision(block.name, (0, *depth_blocks(nest, depth, read_once(nest, target)))))
        derived[names(f"blocks_{depth.name}")] = where(block.eq(0), 1, ceil_div(depth.units, block))
    return Step("cache block", tuple(decisions), (), derived, inert)
