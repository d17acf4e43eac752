"""Where a panel of one cache block is filled, and what part of its operand it then holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.operands.panels import PanelPiece, TileRange
from autosched.logic import Const, Int, Var, minimum
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps import StepNames, block_loops, blocked_axes, outer_axes, tiled_axes
from autosched.tiling.steps.cpu.loop_order import ORDER


@dataclass(frozen=True)
class Around:
    """The loops of a nest around its tiles, as the row has them: `count` is how many tiles (or units) each axis has,
    `ranges` the part of each spatial axis that this thread does."""

    nest: Nest
    names: StepNames
    values: Mapping[str, int]
    ranges: Mapping[str, tuple[Int, Int]]

    def count(self, axis: NestAxis) -> int:
        register = self.values[self.names.register(axis)] if axis in tiled_axes(self.nest) else 1
        return -(-axis.units // register)

    def block(self, axis: NestAxis) -> int:
        """Tiles (or depth units) of one block, 0 where a single block holds all: there is no loop then."""
        chosen = self.values[self.names.block(axis)]
        return 0 if chosen >= self.count(axis) else chosen

    def place(self, operand: str) -> NestAxis:
        """The axis of the innermost loop around the tiles on which the operand depends: the panel is filled where an
        iteration of that loop begins."""
        mine, outer = self.nest.operand_axes(operand), outer_axes(self.nest)
        loops = block_loops(self.nest, ORDER.of(self.names, self.values))
        looped = [a for a in loops if a in mine and (self.count(a) > 1 if a in outer else self.block(a))]
        return looped[-1]

    def piece(self, operand: str, threads: int) -> PanelPiece:
        """What the panel holds of the operand. Loops around have the names that `tensor_nest` gives them."""
        mine = self.nest.operand_axes(operand)
        here = frozenset(a.name for a in outer_axes(self.nest) if a in mine)
        spans: dict[str, TileRange] = {}
        for axis in blocked_axes(self.nest):
            if axis is None or axis not in mine:
                continue
            first, end = self.ranges.get(axis.name, (Const(0), Const(self.count(axis))))
            most = block = self.block(axis)
            if block:
                first = Var(f"{identifier(axis.name)}b")
                end = minimum(first + block, end)
            spans[axis.name] = TileRange(first, end, most or self.count(axis))
        return PanelPiece(here, spans, (Var("thread"), threads) if threads > 1 else None)
