"""Where a tensorized nest reads its operands from: the tensor itself, a panel in order of use, or a copy of the tensor
in another shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from autosched.codegen.kernel import Assign, Buffer, For, Function, Lane, Stmt
from autosched.codegen.lower.bordered import Copy, Cut, copy_shape
from autosched.codegen.lower.context import Context, identifier
from autosched.codegen.lower.rename import place_index
from autosched.codegen.lower.simplify import bind
from autosched.ir.value import Literal, Read, Select, Value
from autosched.logic import TRUE, Bool, Compare, Const, Int, Var, all_of, free_vars, interval
from autosched.logic.expr import substitute_bool
from autosched.tiling.nest import Nest, NestAxis
from autosched.tiling.plan import TensorPart
from autosched.tiling.steps import DIRECT, INTERLEAVED, PADDED, PANEL, Interleave, interleave, tiled_axes

LANE = "e"


@dataclass(frozen=True)
class Position:
    """Where the code being emitted stands on one nest axis: register tile `tile` (or None), element of the register
    tile or unit `unit`, both expressions; `partial` when the intrinsic tile there may reach past the extent."""

    tile: Int | None
    unit: Int
    partial: bool = False


class Loads(Protocol):
    """Where an operand's registers are filled from."""

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place, and under which condition it is real (else zero)."""
        ...


@dataclass(frozen=True)
class Source:
    """One operand's memory. `kind` is DIRECT, PANEL, PADDED or INTERLEAVED; a copy of the last two kinds starts at
    `lows` of the tensor, and `how` says what was interleaved."""

    nest: Nest
    operand: str
    kind: int
    buffer: Buffer
    lows: tuple[int, ...] = ()
    how: Interleave | None = None

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place, and under which condition it is real (else zero)."""
        nest, read = self.nest, self.nest.mapping.operands[self.operand]
        lanes = nest.lane_coordinates(self.operand, element)
        dtype = self.buffer.dtype
        if self.kind == PANEL:
            return Read(self.buffer.name, panel_index(nest, self.operand, at, lanes), dtype), TRUE
        positions = elements(nest, at, lanes)
        axes = nest.at(positions)
        mine = nest.operand_axes(self.operand)
        held = {self.how.axis} if self.how else set()  # a copy has zeros past the end of these
        if self.kind in (PADDED, INTERLEAVED):
            held |= {a.name for a in _rounded(nest)}
        valid = [positions[a.name] < a.extent for a in mine if at[a.name].partial and a.name not in held]
        index = place_index(read.index, axes)
        if self.kind in (PADDED, INTERLEAVED):
            index = tuple(i - low for i, low in zip(index, self.lows, strict=True))
            if self.how:
                group = at[self.how.axis].unit
                index = (*index[: self.how.dim], group, *index[self.how.dim + 1 :], lanes[self.how.intrinsic_axis])
        else:
            valid.append(substitute_bool(nest.guarded[self.operand], axes))
        return Read(self.buffer.name, index, dtype), all_of(*valid)


def elements(nest: Nest, at: dict[str, Position], lanes: dict[str, Int]) -> dict[str, Int]:
    """The element position on every nest axis, for a register element with these intrinsic coordinates."""
    found: dict[str, Int] = {}
    for axis in nest.axes:
        inside = lanes.get(axis.intrinsic_axis or "", Const(0))
        found[axis.name] = at[axis.name].unit * axis.unit + inside
    return found


def panel_axes(nest: Nest, operand: str) -> tuple[list[NestAxis], list[NestAxis], list[NestAxis], list[str]]:
    """The axes of a panel: outside and not tiled, register-tiled, reductions with the depth last, intrinsic ones."""
    mine = nest.operand_axes(operand)
    tiled = [a for a in tiled_axes(nest) if a in mine]
    outside = [a for a in mine if not a.reduction and a not in tiled]
    depth = [a for a in mine if a.reduction and a is not nest.depth] + [a for a in mine if a is nest.depth]
    order = [n for n in nest.intrinsic.operand_axes[operand] if n is not None]
    on = {a.intrinsic_axis for a in mine}
    return outside, tiled, depth, [n for n in order if n in on]


def panel_index(nest: Nest, operand: str, at: dict[str, Position], lanes: dict[str, Int]) -> tuple[Int, ...]:
    outside, tiled, depth, inside = panel_axes(nest, operand)
    index: list[Int] = [at[a.name].unit for a in outside]
    for a in tiled:
        tile = at[a.name].tile
        assert tile is not None
        index.append(tile)
    index += [at[a.name].unit for a in depth]
    index += [Var(f"{identifier(a.name)}r") for a in tiled]
    return tuple(index) + tuple(lanes[n] for n in inside)


def source(part: TensorPart, operand: str, ctx: Context) -> tuple[Source, tuple[Stmt, ...]]:
    """The operand's source under the schedule, and the statements of the timed call that fill it.

    A `const` operand is filled by a `prepare` function instead, outside the timed call.
    """
    nest, names = part.nest, part.names
    kind = ctx.values[names.pack(operand)]
    read = nest.mapping.operands[operand]
    tensor = ctx.tensor(read.tensor)
    if kind == DIRECT:
        return Source(nest, operand, DIRECT, tensor), ()
    how = interleave(nest, operand) if kind == INTERLEAVED else None
    lows: tuple[int, ...] = ()
    if kind == PANEL:
        buffer, body = panel(
            nest, operand, {a.name: ctx.values[names.register(a)] for a in tiled_axes(nest)}, tensor, ctx
        )
    else:
        lows = tuple(min(0, low) for low, _ in _spans(nest, read))
        buffer, body = copied(nest, operand, how, tensor, ctx)
    const = ctx.program.tensors[read.tensor].const or tensor.scope == "packed"
    if const:
        ctx.buffers[buffer.name] = Buffer(buffer.name, buffer.dtype, buffer.shape, "packed", tensor.name)
        ctx.prepare.append(Function(f"prepare_{buffer.name}", (tensor.name, buffer.name), body))
        body = ()
    return Source(nest, operand, kind, ctx.buffers[buffer.name], lows, how), body


def panel(
    nest: Nest, operand: str, register: dict[str, int], tensor: Buffer, ctx: Context
) -> tuple[Buffer, tuple[Stmt, ...]]:
    """Copy into the order of use, fills where the program has no element. Innermost: one register's elements."""
    outside, tiled, depth, inside = panel_axes(nest, operand)
    on = {a.intrinsic_axis: a for a in nest.axes if a.intrinsic_axis}
    width = [on[n].unit for n in inside]
    tile_counts = [-(-a.units // register[a.name]) for a in tiled]
    shape = [a.units for a in outside] + tile_counts + [a.units for a in depth]
    shape += [register[a.name] for a in tiled] + width
    buffer = ctx.declare(f"{tensor.name}_panel", tensor.dtype, tuple(shape), "workspace", tensor.name)
    at: dict[str, Position] = {a.name: Position(None, Const(0)) for a in nest.axes}
    loops: list[tuple[str, int]] = []
    for a in outside:
        loops.append((identifier(a.name), a.units))
        at[a.name] = Position(None, Var(identifier(a.name)))
    for a, count in zip(tiled, tile_counts, strict=True):
        loops.append((f"{identifier(a.name)}t", count))
    for a in depth:
        loops.append((f"{identifier(a.name)}u", a.units))
        at[a.name] = Position(None, Var(f"{identifier(a.name)}u"))
    for a in tiled:
        tile, r = Var(f"{identifier(a.name)}t"), Var(f"{identifier(a.name)}r")
        loops.append((r.name, register[a.name]))
        at[a.name] = Position(tile, tile * register[a.name] + r)
    total = 1
    for n in width:
        total *= n
    lane = Lane(LANE, total) if total > 1 else None
    flat: Int = Var(LANE) if lane else Const(0)
    lanes: dict[str, Int] = {}
    stride = total
    for k, (axis_name, w) in enumerate(zip(inside, width, strict=True)):
        stride //= w
        coordinate = flat // stride
        lanes[axis_name] = coordinate % w if k else coordinate
    positions = elements(nest, at, lanes)
    axes = nest.at(positions)
    ranges = {v: (0, n - 1) for v, n in loops} | {LANE: (0, total - 1)}
    real = [positions[a.name] < a.extent for a in nest.operand_axes(operand)]
    real = [c for c in real if not _always(c, ranges)]
    real.append(substitute_bool(nest.guarded[operand], axes))
    read = nest.mapping.operands[operand]
    element = Read(tensor.name, place_index(read.index, axes), tensor.dtype)
    value = or_fill(element, all_of(*real), nest.fill(operand))
    index = panel_index(nest, operand, at, lanes)
    return buffer, _loops(loops, (Assign(buffer.name, index, value, lane),), f"pack {tensor.name} in the order of use")


def copied(
    nest: Nest, operand: str, how: Interleave | None, tensor: Buffer, ctx: Context
) -> tuple[Buffer, tuple[Stmt, ...]]:
    """A copy in the tensor's own order of dimensions: the border that the guard leaves out holds zeros, and what `how`
    names is interleaved."""
    spans = _spans(nest, nest.mapping.operands[operand])
    cuts = []
    for (low, high), real in zip(spans, tensor.shape, strict=True):
        cuts.append(Cut(high - min(0, low) + 1, min(0, low), real))
    name = f"{tensor.name}_{'groups' if how else 'padded'}"
    buffer = ctx.declare(name, tensor.dtype, copy_shape(cuts, how), "workspace", tensor.name)
    return buffer, Copy(buffer, tensor, tuple(cuts), how).statements()


def _rounded(nest: Nest) -> list[NestAxis]:
    """Lanes that copies cover to the end of the last register, so that no load of one is masked; the lanes past the
    end are computed from zeros and never stored."""
    return [a for a in nest.lanes if len(a.members) == 1]


def _spans(nest: Nest, read: Read) -> list[tuple[int, int]]:
    """The first and last position that each subscript takes, partial registers counted whole."""
    ranges = nest.ranges
    for axis in _rounded(nest):
        ((name, low, _),) = axis.members
        ranges = ranges | {name: (low, low + axis.units * axis.unit - 1)}
    return [interval(i, ranges) for i in read.index if isinstance(i, Int)]


def or_zero(read: Read, real: Bool) -> Value:
    """The element where it is real, else zero."""
    return or_fill(read, real, Literal(0, read.dtype))


def or_fill(read: Read, real: Bool, fill: Literal) -> Value:
    """The element where it is real, else the fill."""
    return read if real == TRUE else Select(real, read, fill, read.dtype)


def _always(condition: Bool, ranges: dict[str, tuple[int, int]]) -> bool:
    """Whether a comparison `a < b` or `a >= b` holds all over a box."""
    if not isinstance(condition, Compare) or not free_vars(condition) <= set(ranges):
        return condition == TRUE
    low, high = interval(condition.left - condition.right, ranges)
    return high < 0 if condition.op == "<" else condition.op == ">=" and low >= 0


def _loops(loops: list[tuple[str, int]], body: tuple[Stmt, ...], note: str) -> tuple[Stmt, ...]:
    """Serial loops around `body`; the outermost one's iterations are independent (each writes its own elements)."""
    for k, (name, count) in reversed(list(enumerate(loops))):
        if count == 1 and k > 0:
            body = bind(body, {name: Const(0)})
            continue
        body = (For(name, Const(0), Const(count), body, note=note if k == 0 else ""),)
    return body
