"""Lowering of a tensor part for a spatial accelerator: loops over blocks, copies into scratchpads, one tile at a time.

Everything is in the order of the program; what overlaps is up to the machine, which may run the next copy into another
slot of a scratchpad while the array still computes. A slot is chosen by the loop that a copy stands in, modulo the
number of slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.operands.panels import or_fill
from autosched.codegen.lower.common.operands.sources import MemorySource, OperandSource
from autosched.codegen.lower.common.positions import LANE, Position
from autosched.codegen.lower.common.tile_registers import declared
from autosched.codegen.lower.spatial.loaded_far_out import loaded_far_out
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, Buffer, For, If, IntrinsicCall, Lane, Stmt
from autosched.ir.value import Read, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, minimum
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps.cpu.pack import DIRECT
from autosched.tiling.steps.spatial.loops import (
    ORDER,
    kept_level,
    resident_name,
    slots_name,
    spatial_loops,
    spatial_orders,
    tile_loops,
)

Places = dict[str, Position]


@dataclass(frozen=True)
class Resident:
    """An input's tiles in a scratchpad: the slot, the tile along each axis it has, the elements of the tile."""

    buffer: Buffer
    index: tuple[Int, ...]

    def load(self, at: Places, element: Int) -> tuple[Value, Bool]:
        """The element; fills are there already where the program has none."""
        return Read(self.buffer.name, (*self.index, element), self.buffer.dtype), TRUE


def lower_spatial(part: TensorPart, ctx: Context) -> tuple[Stmt, ...]:
    """The loops of one tensor part under one row of its spatial space."""
    return SpatialNest(part, ctx).emit()


class SpatialNest:
    def __init__(self, part: TensorPart, ctx: Context) -> None:
        self.part, self.nest, self.names = part, part.nest, part.names
        ones = {self.names.register(a): 1 for a in spatial_loops(self.nest)}
        self.ctx = replace(ctx, values={**ctx.values, **ones})
        self.order = spatial_orders(self.nest)[ORDER.of(self.names, ctx.values)]
        self.block = {a.name: ctx.values[self.names.block(a)] for a in self.order}
        self.level = {o.name: ctx.values[resident_name(self.names, o.name)] for o in self.nest.intrinsic.inputs}
        self.kept = kept_level(self.nest, self.order)
        self.pair = tuple(a for a in spatial_loops(self.nest) if a is not self.nest.depth)
        self.others = tuple(a for a in self.nest.reduction if a is not self.nest.depth)

    def emit(self) -> tuple[Stmt, ...]:
        buffers = {o.name: self.scratch(o.name) for o in self.nest.intrinsic.inputs}
        sources: dict[str, OperandSource] = {n: Resident(b, self.place(n)) for n, b in buffers.items()}
        owner = self.accumulator(), self.slots(self.nest.intrinsic.accumulator.name) * self.kept_count()
        micro = declared(self.part, sources, self.ctx, tiled=self.pair, owner=owner, scope="accumulator")
        ones = {a.name: 1 for a in self.pair}
        zero = {a.name: Position(None, Const(0)) for a in self.nest.reduction}

        def level(k: int) -> tuple[Stmt, ...]:
            """What runs inside the first `k` loops over blocks."""
            body: list[Stmt] = []
            for o in self.nest.intrinsic.inputs:
                if self.level[o.name] == k:
                    body += self.copy(o.name, buffers[o.name])
            if k == self.kept:
                body += self.tiles(self.pair, k, lambda at: micro.start(at | zero, ones, TRUE))
            if k < len(self.order):
                axis = self.order[k]
                var, trips = f"{identifier(axis.name)}b", -(-axis.units // self.block[axis.name])
                inner = level(k + 1)
                note = f"blocks of {axis.name}"
                body += (
                    bind(inner, {var: Const(0)})
                    if trips == 1
                    else (For(var, Const(0), Const(trips), inner, "serial", note=note),)
                )
            else:
                body += self.tiles(tile_loops(self.nest), k, lambda at: self.shortened(micro.step(at, ones, None), at))
            if k == self.kept:
                done = self.tiles(
                    self.pair,
                    k,
                    lambda at: (*micro.drop(at | zero, ones, TRUE), *micro.finish(at | zero, ones, TRUE)),
                )
                body += done
            return tuple(body)

        body = level(0)
        for axis in reversed([a for a in self.nest.spatial if a not in self.pair]):
            var = f"{identifier(axis.name)}b"
            body = bind(body, {var: Const(0)}) if axis.units == 1 else (For(var, Const(0), Const(axis.units), body),)
        states = {micro.registers[o.name] for o in self.nest.intrinsic.held}
        return loaded_far_out(body, states) if states else body

    def shortened(self, step: tuple[Stmt, ...], at: Places) -> tuple[Stmt, ...]:
        """A step whose instruction is told how many lanes the last tile along its axis has left."""
        if self.nest.shortened is None:
            return step
        axis, short = self.nest.shortened
        last = at[axis.name].unit >= axis.units - 1

        def visit(stmt: Stmt) -> tuple[Stmt, ...]:
            if isinstance(stmt, For):
                return (replace(stmt, body=tuple(s for inner in stmt.body for s in visit(inner))),)
            if not isinstance(stmt, IntrinsicCall):
                return (stmt,)
            fewer = replace(stmt, intrinsic=short)
            return (fewer,) if axis.units == 1 else (If(~last, (stmt,)), If(last, (fewer,)))

        return tuple(s for stmt in step for s in visit(stmt))

    # -- where tiles are ---------------------------------------------------------------------------------------------

    def number(self, axis: NestAxis, inside: bool) -> Int:
        """A tile's number along an axis, `inside` its loop over blocks or for all of the axis."""
        tile, block = Var(f"{identifier(axis.name)}t"), Var(f"{identifier(axis.name)}b")
        return block * self.block[axis.name] + tile if inside else tile

    def local(self, axis: NestAxis, level: int) -> Int:
        """A tile's place among those that are resident `level` loops inside, in the innermost loops."""
        if axis not in self.order:
            return self.number(axis, False)
        inside = self.order.index(axis) < level
        return Var(f"{identifier(axis.name)}t") if inside else self.number(axis, True)

    def slot(self, operand: str, level: int) -> Int:
        slots = self.slots(operand)
        if slots == 1 or level == 0:
            return Const(0)
        return Var(f"{identifier(self.order[level - 1].name)}b") % slots

    def slots(self, operand: str) -> int:
        return self.ctx.values[slots_name(self.names, operand)]

    def axes(self, operand: str) -> tuple[NestAxis, ...]:
        """The axes that an input's resident tiles are spread over."""
        own = self.nest.operand_axes(operand)
        return tuple(a for a in (*self.pair, *self.others, self.nest.depth) if a is not None and a in own)

    def extent(self, axis: NestAxis, level: int) -> int:
        """Tiles along an axis that are resident `level` loops inside."""
        inside = axis in self.order and self.order.index(axis) < level
        return self.block[axis.name] if inside else axis.units

    def place(self, operand: str) -> tuple[Int, ...]:
        level = self.level[operand]
        return (self.slot(operand, level), *(self.local(a, level) for a in self.axes(operand)))

    def kept_count(self) -> int:
        total = 1
        for axis in self.pair:
            total *= self.extent(axis, self.kept)
        return total

    def accumulator(self) -> Int:
        """Which accumulator a tile of the output has, as one number."""
        flat = self.slot(self.nest.intrinsic.accumulator.name, self.kept)
        for axis in self.pair:
            flat = flat * self.extent(axis, self.kept) + self.local(axis, self.kept)
        return flat

    # -- loops over tiles --------------------------------------------------------------------------------------------

    def tiles(
        self, axes: Sequence[NestAxis], level: int, body: Callable[[Places], tuple[Stmt, ...]]
    ) -> tuple[Stmt, ...]:
        """Loops over the tiles that are resident `level` loops inside: those of a block, or all of an axis. Where a
        loop over blocks is still to come, its variable stands for 0 and the tile for all of the axis."""
        at: Places = {a.name: Position(None, Const(0)) for a in self.nest.axes}
        spatial = [a for a in self.nest.spatial if a not in self.pair]
        for axis in spatial:
            at[axis.name] = Position(None, Var(f"{identifier(axis.name)}b"), axis.extent % axis.unit != 0)
        outer: dict[str, Int] = {}
        for axis in axes:
            inside = axis in self.order and self.order.index(axis) < level
            if axis in self.order and not inside:
                outer[f"{identifier(axis.name)}b"] = Const(0)
            at[axis.name] = Position(None, self.number(axis, inside), axis.extent % axis.unit != 0)
        stmts = bind(body(at), outer)
        if not stmts:
            return ()  # what is overwritten starts from nothing
        for axis in reversed(axes):
            var, inside = f"{identifier(axis.name)}t", axis in self.order and self.order.index(axis) < level
            n = self.block[axis.name] if inside else axis.units
            upper: Int = Const(n)
            if inside and axis.units % n:
                upper = minimum(n, axis.units - Var(f"{identifier(axis.name)}b") * n)
            stmts = bind(stmts, {var: Const(0)}) if n == 1 else (For(var, Const(0), upper, stmts),)
        return stmts

    # -- scratchpads -------------------------------------------------------------------------------------------------

    def scratch(self, operand: str) -> Buffer:
        spec = self.nest.intrinsic.operands[operand]
        tensor = self.nest.mapping.operands[operand].tensor
        shape = tuple(self.extent(a, self.level[operand]) for a in self.axes(operand))
        whole = (self.slots(operand), *shape, spec.elements)
        return self.ctx.declare(f"{tensor}_scratch", spec.dtype, whole, "shared", tensor)

    def copy(self, operand: str, buffer: Buffer) -> tuple[Stmt, ...]:
        """Tiles from memory, zeros (or what else the sums do not notice) where the program has no element."""
        spec, level = self.nest.intrinsic.operands[operand], self.level[operand]
        fill = self.nest.fill(operand)
        tensor = self.ctx.tensor(self.nest.mapping.operands[operand].tensor)
        element: Int = Var(LANE) if spec.elements > 1 else Const(0)
        lane = Lane(LANE, spec.elements) if spec.elements > 1 else None

        def stored(at: Places) -> tuple[Stmt, ...]:
            value, valid = MemorySource(self.nest, operand, DIRECT, tensor).load(at, element)
            assert isinstance(value, Read)
            return (Assign(buffer.name, (*self.place(operand), element), or_fill(value, valid, fill), lane),)

        return self.tiles(self.axes(operand), level, stored)
