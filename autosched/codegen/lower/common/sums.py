"""Sums that wait between the blocks of a reduction, in the order in which register tiles hold them.

for c block:                                            for c block:
  for x tile:                                             for x tile:
    acc = first block ? 0 : Y[o lanes, x]                   acc = first block ? 0 : Y_sums[x tile, …, lanes]
    …                                                       …
    Y[o lanes, x] = acc                                     last block ? Y[o lanes, x] = acc : Y_sums[…] = acc

Where the lanes of a register lie apart in the output (channels, where they come first) it would be gathered and
scattered element by element in every block. Of outer loops only one turn is held, by each thread for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import Position
from autosched.logic import Const, Int, Var
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import StepNames, blocked_axes, tiled_axes, vectorises
from autosched.tiling.steps.cpu.outer_tile_order import LINES, WITHIN, line_axis


@dataclass(frozen=True)
class Sums:
    """`buffer` holds the registers of all tiles along `axes`, those whose loops run inside a block of the reduction."""

    buffer: str
    axes: tuple[NestAxis, ...]
    threads: int

    def index(self, at: Mapping[str, Position], register: tuple[Int, ...]) -> tuple[Int, ...]:
        """Where the register (its units of the tile, and the element) of the tile at a place lies."""
        tiles = [at[a.name].tile for a in self.axes]
        thread = Var("thread") if self.threads > 1 else Const(0)
        return (thread, *(t for t in tiles if t is not None), *register)


def sums(part: TensorPart, ctx: Context, threads: int) -> Sums | None:
    """None where the reduction has one block, or where a register of the output lies in it as it is."""
    nest, names = part.nest, part.names
    if not held(nest, names, ctx.values):
        return None
    within = line_axis(nest) if LINES.of(names, ctx.values) == WITHIN else None
    axes = tuple(a for a in tiled_axes(nest) if a in blocked_axes(nest) or a is within)
    size = {a.name: ctx.values[names.register(a)] for a in tiled_axes(nest)}
    tiles = [-(-a.units // size[a.name]) for a in axes]
    accumulator = nest.intrinsic.accumulator
    shape = (threads, *tiles, *size.values(), accumulator.elements)
    buffer = ctx.declare(f"{nest.stage.assign.tensor}_sums", accumulator.dtype, shape, "workspace")
    return Sums(buffer.name, axes, threads)


def held(nest: Nest, names: StepNames, values: Mapping[str, int]) -> bool:
    """Whether a row's sums are kept apart between its blocks."""
    own = nest.intrinsic
    if nest.blocked_reduction is None or own.matrices is not None or vectorises(nest, own.accumulator.name):
        return False
    return 0 < values[names.block(nest.blocked_reduction)] < nest.blocked_reduction.units
