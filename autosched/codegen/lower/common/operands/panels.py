"""Panels: copies of an operand in the order in which the registers of a nest use it, whole or of one cache block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.invariant import Split, split_invariant
from autosched.codegen.lower.common.matrix_rows import ROW, row_lanes
from autosched.codegen.lower.common.positions import LANE, Position, elements
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, Buffer, For, If, Lane, Stmt
from autosched.codegen.tree.rename import place as place_value
from autosched.codegen.tree.rename import place_index
from autosched.ir.dtypes import DType
from autosched.ir.value import Literal, Read, Select, Value, blank
from autosched.logic import TRUE, Bool, Compare, Const, Int, Var, all_of, free_vars, interval, minimum
from autosched.logic.walk import substitute_bool
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps import column_units, tiled_axes
from autosched.tiling.steps.common.layout import filled, rows_held

Places = Mapping[str, Position]
Ranges = Mapping[str, tuple[int, int]]
"""Loop variable to its least and greatest value."""


@dataclass(frozen=True)
class TileRange:
    """Register tiles (or units, of an axis that is not tiled) from `first` up to `end`; never more than `most`."""

    first: Int
    end: Int
    most: int


@dataclass(frozen=True)
class PanelPiece:
    """The part of an operand that a panel holds at a time. Axes of `here` stand where the loops around it do, of those
    in `spans` it holds a part, of any other all. `owner`: a thread and how many there are, each with its own panel.
    `columns`: the units of a tile stand before the reductions, and columns keep apart."""

    here: frozenset[str] = frozenset()
    spans: Mapping[str, TileRange] = field(default_factory=dict)
    owner: tuple[Int, int] | None = None
    columns: bool = False


WHOLE = PanelPiece()


def panel_axes(nest: Nest, operand: str) -> tuple[list[NestAxis], list[NestAxis], list[NestAxis], list[str]]:
    """The axes of a panel: outside and not tiled, register-tiled, reductions with the depth last, intrinsic ones (none
    of a windowed operand, which has its register's elements instead)."""
    mine = nest.operand_axes(operand)
    tiled = [a for a in tiled_axes(nest) if a in mine]
    outside = [a for a in mine if not a.reduction and a not in tiled]
    depth = [a for a in mine if a.reduction and a is not nest.depth] + [a for a in mine if a is nest.depth]
    order = [n for n in nest.intrinsic.operand_axes[operand] if n is not None]
    on = {a.intrinsic_axis for a in mine}
    return outside, tiled, depth, [] if _flat(nest, operand) else [n for n in order if n in on]


def _flat(nest: Nest, operand: str) -> bool:
    """Whether a panel has a windowed operand's registers as they are, element by element."""
    return operand in nest.intrinsic.windows


def panel_index(
    nest: Nest, operand: str, at: Places, lanes: tuple[Int, ...], piece: PanelPiece = WHOLE
) -> tuple[Int, ...]:
    """Where a panel holds the element of a place: owner, axes outside, tiles, reductions, units of the tile, `lanes`
    (`lanes_index`)."""
    outside, tiled, depth, _ = panel_axes(nest, operand)
    units: list[Int] = [Var(f"{identifier(a.name)}r") for a in tiled]
    places: list[list[Int]] = [[], []]
    for k, axes in enumerate(((*outside, *tiled), depth)):
        for a in axes:
            if a.name in piece.here:
                continue
            where = at[a.name].tile if a in tiled else at[a.name].unit
            assert where is not None
            places[k].append(where - piece.spans[a.name].first if a.name in piece.spans else where)
    owner: list[Int] = [] if piece.owner is None else [piece.owner[0]]
    order = (owner, places[0], units, places[1]) if piece.columns else (owner, *places, units)
    return tuple(i for part in order for i in part) + lanes


def lanes_index(nest: Nest, operand: str, element: Int) -> tuple[Int, ...]:
    """Where a panel holds an element of a register: its coordinates along the intrinsic's axes, or, of a register that
    holds a matrix, row and place in the row, as the register has them."""
    if nest.intrinsic.matrices is not None:
        width = filled(nest, operand)
        return element // width, element % width
    if _flat(nest, operand):
        return (element,)
    lanes = nest.lane_coordinates(operand, element)
    return tuple(lanes[n] for n in panel_axes(nest, operand)[3])


def panel(
    nest: Nest, operand: str, register: Mapping[str, int], tensor: Buffer, ctx: Context, piece: PanelPiece = WHOLE
) -> tuple[Buffer, tuple[Stmt, ...]]:
    """The panel's buffer and what fills it: fills stand where the program has no element."""
    filling = Filling(nest, operand, register, tensor, piece)
    buffer = ctx.declare(f"{tensor.name}_panel", filling.dtype, filling.shape(), "workspace", tensor.name)
    shape = filling.register_shape()
    kept = tuple(ctx.declare(f"{tensor.name}_kept", p.dtype, shape, "register") for p in filling.parts.parts)
    return buffer, replace(filling, kept=kept).statements(buffer)


@dataclass(frozen=True)
class Filling:
    """Copies an operand of a tensor in the order of use, or computes it there. Whole tiles are copied without
    conditions; the last of an axis that does not divide is a variant of its own. `kept`: registers for the parts of
    what is computed that stay along the reductions."""

    nest: Nest
    operand: str
    register: Mapping[str, int]
    tensor: Buffer
    piece: PanelPiece
    kept: tuple[Buffer, ...] = ()

    @property
    def computed(self) -> Value | None:
        """What the panel holds, at the program's axes, where that is no element of the tensor."""
        way = self.nest.computed.get(self.operand)
        return None if way is None else way.value

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype if self.computed is None else self.computed.dtype

    @cached_property
    def parts(self) -> Split:
        """What is computed, with its parts that stay along the reductions."""
        if self.computed is None or self.nest.intrinsic.matrices is not None:
            return Split((), self.computed or blank(self.tensor.dtype))
        depth = {name for a in panel_axes(self.nest, self.operand)[2] for name, _, _ in a.members}
        return split_invariant(self.computed, frozenset(depth), "")

    def register_shape(self) -> tuple[int, ...]:
        """Of the registers for one of these parts: the units of a tile, and the elements of a register."""
        tiled = panel_axes(self.nest, self.operand)[1]
        return (*(self.register[a.name] for a in tiled), max(1, prod(self.widths())))

    def count(self, axis: NestAxis) -> int:
        """Register tiles along a tiled axis, units along any other."""
        return -(-axis.units // self.register.get(axis.name, 1))

    def shape(self) -> tuple[int, ...]:
        outside, tiled, depth, _ = panel_axes(self.nest, self.operand)
        owners = [] if self.piece.owner is None else [self.piece.owner[1]]
        spans = self.piece.spans
        moving = [[a for a in axes if a.name not in self.piece.here] for axes in ((*outside, *tiled), depth)]
        tiles, depths = ([spans[a.name].most if a.name in spans else self.count(a) for a in axes] for axes in moving)
        units, widths = [self.register[a.name] for a in tiled], self.widths()
        if not self.piece.columns:
            return (*owners, *tiles, *depths, *units, *widths)
        unit_bytes = prod(widths) * self.dtype.bytes
        depths[-1] = column_units(prod(depths), unit_bytes) if len(depths) == 1 else depths[-1]
        return (*owners, *tiles, *units, *depths, *widths)

    def widths(self) -> list[int]:
        if self.nest.intrinsic.matrices is not None:
            return [rows_held(self.nest, self.operand), filled(self.nest, self.operand)]
        if _flat(self.nest, self.operand):
            return [self.nest.intrinsic.operands[self.operand].elements]
        on = {a.intrinsic_axis: a for a in self.nest.axes if a.intrinsic_axis}
        return [on[n].unit for n in panel_axes(self.nest, self.operand)[3]]

    def statements(self, buffer: Buffer) -> tuple[Stmt, ...]:
        """Loops over tiles and units; the iterations of each outermost one write different elements."""
        outside, tiled, depth, _ = panel_axes(self.nest, self.operand)
        axes = (*outside, *tiled, *depth)
        start = {a.name: Position(None, Const(0)) for a in self.nest.axes}
        sizes = {a.name: self.register[a.name] for a in tiled}

        def loop(k: int, at: Places, units: Mapping[str, int], ranges: Ranges) -> tuple[Stmt, ...]:
            if k == len(axes) - len(depth) and self.kept:
                return (*self.keep(at, units, ranges), *inside(k, at, units, ranges))
            return inside(k, at, units, ranges)

        def inside(k: int, at: Places, units: Mapping[str, int], ranges: Ranges) -> tuple[Stmt, ...]:
            if k == len(axes):
                return self.tile(buffer, at, units, ranges)
            inner = self.along(axes[k], lambda where, n, more: loop(k + 1, {**at, **where}, units | n, ranges | more))
            return self.rows(inner) if axes[k] is self.nest.depth and self.rows_around else inner

        note = f"pack {self.tensor.name} in the order of use"
        return tuple(replace(s, note=note) if isinstance(s, For) else s for s in loop(0, start, sizes, {}))

    @cached_property
    def rows_around(self) -> bool:
        """Whether the rows of a register that holds a matrix run around the depth: where a row lies takes arithmetic
        (of fused axes, of guards), and is the same all along the depth."""
        nest, depth = self.nest, self.nest.depth
        if nest.intrinsic.matrices is None or depth is None or depth not in nest.operand_axes(self.operand):
            return False
        lanes = row_lanes(nest, self.operand)
        moved = [a for a in nest.axes if a.intrinsic_axis in lanes and ROW in free_vars(lanes[a.intrinsic_axis])]
        dear = nest.guarded[self.operand] != TRUE or any(len(a.members) > 1 for a in moved)
        return dear and depth not in moved

    def rows(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The loop over the rows of a register that holds a matrix."""
        return (For(ROW, Const(0), Const(self.widths()[0]), body),)

    def along(self, axis: NestAxis, body: Callable[..., tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        """The loop over an axis; `body` takes places, units of a tile, and the range of the loop's variable."""
        name, size, count = axis.name, self.register.get(axis.name), self.count(axis)
        plain = axis.reduction or size is not None
        letter = "t" if size is not None else "u" if axis.reduction else ""
        var = Var(f"{identifier(name)}{letter}")
        full = axis.full_units // (size or 1)

        def place(where: Int, high: int, units: int | None) -> tuple[Stmt, ...]:
            if size is None:
                return body({name: Position(None, where)}, {}, {var.name: (0, high)})
            here = Position(where, where * size + Var(f"{identifier(name)}r"))
            return body({name: here}, {} if units is None else {name: units}, {var.name: (0, high)})

        if name in self.piece.here:
            return place(var if count > 1 else Const(0), count - 1, None)  # a loop that runs once is none
        span = self.piece.spans.get(name, TileRange(Const(0), Const(count), count))
        if full == count or not plain:
            return _loop(var.name, span.first, span.end, place(var, count - 1, None))
        stmts = _loop(var.name, span.first, minimum(span.end, full), place(var, full - 1, None)) if full else ()
        rest = place(Const(full), full, None if size is None else axis.units - full * size)
        reached = all_of(span.first <= full, span.end > full)
        return (*stmts, *(rest if reached == TRUE else (If(reached, rest),)))

    def keep(self, at: Places, units: Mapping[str, int], ranges: Ranges) -> tuple[Stmt, ...]:
        """Fills registers with the parts that stay, of one register tile."""
        stmts: list[Stmt] = []
        for held, part in zip(self.kept, self.parts.parts, strict=True):
            stmts += self.tile(held, at, units, ranges, part)
        return tuple(stmts)

    def tile(
        self, buffer: Buffer, at: Places, units: Mapping[str, int], ranges: Ranges, part: Value | None = None
    ) -> tuple[Stmt, ...]:
        """One register tile, register by register; of a `part` of what is computed its registers."""
        nest, (_, tiled, _, inside) = self.nest, panel_axes(self.nest, self.operand)
        widths = self.widths()
        lane: Lane | None
        place: tuple[Int, ...]
        if by_row := nest.intrinsic.matrices is not None:
            rows, total = widths
            lane = Lane(LANE, total)
            lanes = row_lanes(nest, self.operand)
            place = (Var(ROW), Var(LANE))
            ranges = {**ranges, ROW: (0, rows - 1)}
        else:
            total = prod(widths)
            lane = Lane(LANE, total) if total > 1 else None
            flat: Int = Var(LANE) if lane else Const(0)
            lanes, place = self.inside(flat, inside, widths)
        positions = elements(nest, at, lanes)
        axes = nest.at(positions)
        box = {**ranges, LANE: (0, total - 1)} | {f"{identifier(n)}r": (0, r - 1) for n, r in units.items()}
        over = [a for a in nest.operand_axes(self.operand) if part is None or not a.reduction]
        real = [positions[a.name] < a.extent for a in over]
        real = [c for c in real if not _always(c, box)]
        own = tuple(Var(f"{identifier(a.name)}r") for a in tiled)
        if part is not None:
            fill = blank(part.dtype)
            value = or_fill(place_value(part, axes), all_of(*real), fill)
            body: tuple[Stmt, ...] = (Assign(buffer.name, (*own, Var(LANE) if lane else Const(0)), value, lane),)
            return self.units(tiled, units, body)
        real.append(substitute_bool(nest.guarded[self.operand], axes))
        element: Value
        if self.computed is None:
            read = nest.mapping.operands[self.operand]
            element = Read(self.tensor.name, place_index(read.index, axes), self.tensor.dtype)
        else:
            # An axis of the program may have the lane's name, which registers are addressed by.
            apart = tuple(Read(f"{b.name} of a tile", (), b.dtype) for b in self.kept)
            held = (Read(b.name, (*own, Var(LANE) if lane else Const(0)), b.dtype) for b in self.kept)
            registers: dict[Read, Value] = dict(zip(apart, held, strict=True))
            value = self.parts.with_parts(apart) if apart else self.computed
            element = place_value(value, axes, lambda r: registers.get(r, r))
        fill = nest.fill(self.operand)
        if fill.dtype != element.dtype:  # what the operand is computed from: nothing past the ends is used
            fill = blank(element.dtype)
        value = or_fill(element, all_of(*real), fill)
        index = panel_index(nest, self.operand, at, place, self.piece)
        body = (Assign(buffer.name, index, value, lane),)
        if by_row and not self.rows_around:
            body = self.rows(body)
        return self.units(tiled, units, body)

    @staticmethod
    def units(tiled: list[NestAxis], units: Mapping[str, int], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The loops over the units of a register tile."""
        for a in reversed(tiled):
            body = _loop(f"{identifier(a.name)}r", Const(0), Const(units[a.name]), body, "unrolled")
        return body

    def inside(self, flat: Int, names: list[str], widths: list[int]) -> tuple[dict[str, Int], tuple[Int, ...]]:
        """Coordinates along the intrinsic's axes of element `flat` of a register in a panel, and its place there."""
        if _flat(self.nest, self.operand):
            return self.nest.lane_coordinates(self.operand, flat), (flat,)
        lanes: dict[str, Int] = {}
        stride = prod(widths)
        for k, (name, width) in enumerate(zip(names, widths, strict=True)):
            stride //= width
            lanes[name] = (flat // stride) % width if k else flat // stride
        return lanes, tuple(lanes[n] for n in names)


def or_zero(read: Value, real: Bool) -> Value:
    """The element where it is real, else what has zero bits."""
    return or_fill(read, real, blank(read.dtype))


def or_fill(read: Value, real: Bool, fill: Literal) -> Value:
    """The element where it is real, else the fill."""
    return read if real == TRUE else Select(real, read, fill, read.dtype)


def _always(condition: Bool, ranges: Ranges) -> bool:
    """Whether a comparison `a < b` or `a >= b` holds all over a box."""
    if not isinstance(condition, Compare) or not free_vars(condition) <= set(ranges):
        return condition == TRUE
    low, high = interval(condition.left - condition.right, dict(ranges))
    return high < 0 if condition.op == "<" else condition.op == ">=" and low >= 0


def _loop(var: str, lower: Int, upper: Int, body: tuple[Stmt, ...], kind: str = "serial") -> tuple[Stmt, ...]:
    """A loop; one that provably runs once is its body."""
    if isinstance(lower, Const) and isinstance(upper, Const) and upper.value - lower.value <= 1:
        return bind(body, {var: lower}) if upper.value > lower.value else ()
    return (For(var, lower, upper, body, kind),)
