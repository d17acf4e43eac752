"""Prefetches: of what a register tile reads some steps later, and of a panel's next block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.operands.sources import OperandSource
from autosched.codegen.lower.common.positions import LANE, Position
from autosched.codegen.tree.kernel import Prefetch
from autosched.ir.value import Read
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.analysis.nontemporal import LINE_BYTES
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps import ORDERS, StepNames, blocked_axes
from autosched.tiling.steps.cpu.loop_order import ORDER
from autosched.tiling.steps.cpu.prefetch import NEXT, PREFETCH, passed_over
from autosched.tiling.steps.cpu.unroll import UNROLL

Places = dict[str, Position]


def ahead(nest: Nest, operand: str, source: OperandSource, at: Places, units: int) -> Prefetch:
    """Ask for the register that the tile reads `units` depth units later."""
    assert nest.depth is not None
    later = Position(None, at[nest.depth.name].unit + units)
    return _ask(source, at | {nest.depth.name: later}, nest.intrinsic.operands[operand].elements, {})


@dataclass(frozen=True)
class NextBlock:
    """Asks for a panel's next block while this one is read: each pass of the rows for its share of the lines, in
    order. `block` is this block's depth units, of which `unroll` are one trip of the loop, `passes` the row tiles that
    read it; the next block is `along_depth`, or the next tile's."""

    nest: Nest
    operand: str
    lanes: NestAxis
    rows: NestAxis
    block: int
    unroll: int
    passes: int
    along_depth: bool

    def ask(self, source: OperandSource, at: Places, counts: Mapping[str, int], start: Int) -> tuple[Prefetch, ...]:
        """The prefetches of the trip at which `at` stands, in a block that starts at unit `start`."""
        depth = self.nest.depth
        assert depth is not None
        o = self.nest.intrinsic.operands[self.operand]
        line = LINE_BYTES // o.dtype.bytes
        unit = counts[self.lanes.name] * o.elements
        lines = -(-unit * self.unroll // (line * self.passes))
        share = -(-unit * self.block // (line * self.passes)) * line
        tile, row = at[self.lanes.name].tile, at[self.rows.name].tile
        assert tile is not None
        assert row is not None
        first = row * share + (at[depth.name].unit - start) * (lines * line // self.unroll)
        there = at | {depth.name: Position(None, start + self.block if self.along_depth else start)}
        if not self.along_depth:
            there[self.lanes.name] = Position(tile + 1, at[self.lanes.name].unit)
        zero: dict[str, Int] = {f"{identifier(self.lanes.name)}r": Const(0)}
        return tuple(_ask(source, there, o.elements, zero, first + k * line) for k in range(lines))


def next_block(nest: Nest, names: StepNames, values: Mapping[str, int]) -> NextBlock | None:
    """What asks for the next block, where the schedule says so."""
    if PREFETCH.of(names, values) != NEXT:
        return None
    operand, (lanes, rows, depth) = passed_over(nest), blocked_axes(nest)
    assert operand is not None
    assert lanes is not None
    assert rows is not None
    assert depth is not None
    tiles = -(-lanes.units // values[names.register(lanes)])
    block = values[names.block(depth)] or depth.units
    order = ORDERS[ORDER.of(names, values)]
    along_depth = tiles == 1 or (values[names.block(lanes)] == 1 and order.index(2) > order.index(0))
    passes = -(-rows.units // values[names.register(rows)])
    unroll = UNROLL.of(names, values)
    return NextBlock(nest, operand, lanes, rows, min(block, depth.units), unroll, passes, along_depth)


def _ask(source: OperandSource, at: Places, elements: int, zero: Mapping[str, Int], offset: Int = Const(0)) -> Prefetch:
    """Ask for the line `offset` elements behind the register at this place."""
    value, _ = source.load(at, Var(LANE) if elements > 1 else Const(0))
    assert isinstance(value, Read)
    index = [substitute_int(i, {LANE: Const(0), **zero}) for i in value.index if isinstance(i, Int)]
    return Prefetch(value.tensor, (*index[:-1], index[-1] + offset))
