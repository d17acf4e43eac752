"""Operands that the first of several register tiles computes, and leaves behind for the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.tree.kernel import Buffer
from autosched.ir.value import Read, Value
from autosched.logic import TRUE, Bool, Const, Int, Var
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart


@dataclass(frozen=True)
class LeftBehind:
    """The buffer in which the registers of an operand stay: [depth units of a visit, units of the tile …, elements].
    `first`: the unit that the visit begins with. It is the operand's source in tiles behind the first."""

    nest: Nest
    tiled: tuple[NestAxis, ...]
    buffer: Buffer
    first: Int

    def index(self, at: Mapping[str, Position], element: Int) -> tuple[Int, ...]:
        """Where an element of the register at a place stays."""
        assert self.nest.depth is not None
        registers = (Var(f"{identifier(a.name)}r") for a in self.tiled)
        return (at[self.nest.depth.name].unit - self.first, *registers, element)

    def load(self, at: Mapping[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place; nothing that is left behind is past an end."""
        return Read(self.buffer.name, self.index(at, element), self.buffer.dtype), TRUE


def left_behind(part: TensorPart, operand: str, tiled: tuple[NestAxis, ...], ctx: Context) -> LeftBehind:
    """The buffer for an operand with these axes of the register tile, as the row's depth block and tile have it."""
    nest, names, depth = part.nest, part.names, part.nest.depth
    assert depth is not None
    block = ctx.values[names.block(depth)]
    o = nest.intrinsic.operands[operand]
    units = min(block, depth.units) if block else depth.units
    shape = (units, *(ctx.values[names.register(a)] for a in tiled), o.elements)
    return LeftBehind(nest, tiled, ctx.declare(f"{operand}_left", o.dtype, shape, "workspace"), Const(0))
