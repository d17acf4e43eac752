"""Slices in shared memory: how they are filled, and how registers and instructions read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.operands.panels import or_zero
from autosched.codegen.lower.common.positions import LANE, Position
from autosched.codegen.lower.gpu.grid import RANK, BlockWork, Receivers, TileGrid
from autosched.codegen.lower.gpu.im2col_map import corner, walk_of, walked
from autosched.codegen.lower.gpu.slice_pieces import Piece, piece_of
from autosched.codegen.tree.kernel import (
    Assign,
    Buffer,
    Descriptor,
    For,
    If,
    Lane,
    RegisterRef,
    Stmt,
    TensorMap,
    TileCopy,
)
from autosched.codegen.tree.rename import place as place_value
from autosched.codegen.tree.rename import place_index
from autosched.ir.value import Read, Value, map_value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of
from autosched.logic.walk import substitute_bool
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps.gpu.operands.computed_slices import fetched_raw
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES, aligned_bytes, along, element_offset
from autosched.tiling.steps.gpu.operands.operand_sources import DESCRIPTOR, stage_of
from autosched.tiling.steps.gpu.operands.shared_layout import PADDING, SWIZZLE, SharedLayout, chunk_elements, slice_axes
from autosched.tiling.steps.gpu.operands.slice_copies import ASYNC, BULK, COPY, STAGE_COUNT, VECTOR
from autosched.tiling.steps.gpu.operands.tma_boxes import no_box, pixels_of


@dataclass(frozen=True)
class SharedSlices:
    """An operand's slices in a block's shared memory: `stages` of them, for each block of a cluster. `receivers` are
    the blocks of a cluster that need the same slice."""

    nest: Nest
    operand: str
    grid: TileGrid
    layout: SharedLayout
    buffer: Buffer
    size: int  # depth units of a slice
    stages: int
    receivers: Receivers
    raw: tuple[tuple[Read, Buffer], ...] = ()
    """What copies that run on fetch for a computed slice, in all stages of the row; the slice itself has one."""

    @staticmethod
    def declare(nest: Nest, operand: str, grid: TileGrid, ctx: Context) -> SharedSlices:
        """The buffer, as the row says."""
        spec, names, depth = nest.intrinsic.operands[operand], grid.names, nest.depth
        assert depth is not None
        size, stages = ctx.values[names.block(depth)], STAGE_COUNT.of(names, ctx.values)
        axes = slice_axes(nest, operand)
        extents = tuple(a.unit * (size if a is depth else grid.tile.get(a.name, 1)) for a in axes)
        described = stage_of(operand).of(names, ctx.values) == DESCRIPTOR
        swizzle, padded = SWIZZLE.of(names, ctx.values), PADDING.of(names, ctx.values) > 0
        layout = SharedLayout(axes, extents, chunk_elements(spec.dtype.bits), swizzle, described, padded)
        tensor = nest.mapping.operands[operand].tensor
        cluster = [grid.cluster] if grid.cluster > 1 else []
        raw: list[tuple[Read, Buffer]] = []
        for read in fetched_raw(nest, operand) if COPY.of(names, ctx.values) == ASYNC else ():
            dtype = ctx.tensor(read.tensor).dtype
            shape = (*cluster, stages, layout.rows, -(-extents[-1] // layout.chunk) * layout.chunk)
            raw.append((read, ctx.declare(f"{read.tensor}_raw", dtype, shape, "shared", read.tensor)))
        stages = 1 if raw else stages
        outer = (*cluster, *([stages] if stages > 1 else []))
        buffer = ctx.declare(f"{tensor}_shared", spec.dtype, (*outer, *layout.shape), "shared", tensor)
        own = frozenset(a.name for a in nest.operand_axes(operand))
        return SharedSlices(nest, operand, grid, layout, buffer, size, stages, grid.receivers(own), tuple(raw))

    @property
    def computed(self) -> Value | None:
        """What an element is, where the operand is computed on the way."""
        way = self.nest.computed.get(self.operand)
        return None if way is None else way.value

    @property
    def turns(self) -> int:
        """Slices in the buffer: of all stages, for all blocks of a cluster."""
        return self.stages * self.grid.cluster

    def at(self, rank: Int, slot: Int, inside: tuple[Int, ...]) -> tuple[Int, ...]:
        outer: list[Int] = [rank] if self.grid.cluster > 1 else []
        return (*outer, *([slot] if self.stages > 1 else []), *inside)

    # -- filling ----------------------------------------------------------------------------------------------------

    def fill(
        self, work: BlockWork, reduction: dict[str, Int], slot: Int, vector: int, worker: Int, workers: int
    ) -> Stmt:
        """One worker's share of copying the slice at `reduction` (units along each reduction axis); zeros where the
        program has no element. Blocks of a cluster that need the same slice share the work, and write it for all.
        Of a slice that is computed from what is fetched, of fetching that."""
        piece = self._piece(vector)
        value, valid = self.element(work, reduction, piece.place)
        valid = all_of(valid, piece.there)
        if self.raw:
            axes = self._axes(work, reduction, piece.place)
            body: tuple[Stmt, ...] = tuple(
                Assign(buffer.name, self._raw_at(slot, piece), or_zero(place_value(read, axes), valid), piece.lane)
                for read, buffer in self.raw
            )
            return self._shared_out(piece, body, worker, workers, f"fetch a slice of {self.raw[0][0].tensor}")
        read = or_zero(value, valid)
        body = (Assign(self.buffer.name, self.at(RANK, slot, piece.inside), read, piece.lane),)
        first, step = worker, workers
        if (blocks := self.receivers.count) > 1:
            index = self.at(self.receivers.rank(Var("to")), slot, piece.inside)
            store = Assign(self.buffer.name, index, read, piece.lane)
            body = (For("to", Const(0), Const(blocks), (store,), "unrolled", note="multicast"),)
            first, step = worker * blocks + self.receivers.number, workers * blocks
        tensor = self.nest.mapping.operands[self.operand].tensor
        verb = "copy" if self.computed is None else "compute"
        return self._shared_out(piece, body, first, step, f"{verb} a slice of {tensor}")

    def make(
        self, work: BlockWork, reduction: dict[str, Int], slot: Int, vector: int, worker: Int, workers: int
    ) -> Stmt:
        """One worker's share of computing the slice from what it has fetched itself, which lies at `slot`."""
        piece = self._piece(vector)
        value, valid = self.element(work, reduction, piece.place)
        axes = self._axes(work, reduction, piece.place)
        here: dict[Value, Value] = {
            place_value(read, axes): Read(buffer.name, self._raw_at(slot, piece), buffer.dtype)
            for read, buffer in self.raw
        }
        made = or_zero(map_value(value, lambda v: here.get(v, v)), all_of(valid, piece.there))
        body = (Assign(self.buffer.name, self.at(RANK, slot, piece.inside), made, piece.lane),)
        tensor = self.nest.mapping.operands[self.operand].tensor
        return self._shared_out(piece, body, worker, workers, f"compute a slice of {tensor}")

    def _piece(self, vector: int) -> Piece:
        """What a thread fills at once, as wide as the row says and rows allow."""
        if self.computed is not None and vector > aligned_bytes(self.nest, self.operand):
            vector = 0
        return piece_of(self.layout, self.operand, vector * 8 // self.nest.intrinsic.operands[self.operand].dtype.bits)

    def _shared_out(self, piece: Piece, body: tuple[Stmt, ...], first: Int, step: int, note: str) -> Stmt:
        return For(piece.number.name, first, Const(piece.count), body, "serial", step, note)

    def _raw_at(self, slot: Int, piece: Piece) -> tuple[Int, ...]:
        """Where what a piece is made of lies. Blocks of a cluster fetch their own."""
        return (*([RANK] if self.grid.cluster > 1 else []), slot, piece.row, piece.element)

    def boxes(self, work: BlockWork, reduction: dict[str, Int], slot: Int) -> tuple[Stmt, ...]:
        """The same by TMA: a box for each span of the rows. A block of a cluster fetches its part of a
        common slice for all: its spans or its rows; the first fetches everything where neither comes out even."""
        layout, blocks, number = self.layout, self.receivers.count, self.receivers.number
        spans, rows, chunks, chunk = layout.shape
        sides = list(reversed(layout.extents[:-1]))
        slow = _cut(sides, blocks)
        apart, first = blocks > 1 and spans % blocks == 0, Const(0)
        each = spans // blocks if apart else spans
        span: Int = Var(f"{self.operand}_s") if each > 1 else first
        row: Int = first
        places: dict[str, Int] = {}
        if apart:
            span = span + number * each
        elif slow is not None:
            sides[slow] //= blocks
            row = number * (rows // blocks)
            places[layout.axes[-2 - slow].name] = number * sides[slow]
        places[layout.axes[-1].name] = span * (chunks * chunk)
        index = self.at(self.receivers.first if blocks > 1 else RANK, slot, (span, row, first, first))
        box = self._box(self.positions(work, reduction), places, sides, index)
        tensor = box.map.buffer
        body: tuple[Stmt, ...] = (box,)
        if each > 1:
            note = f"spans of {tensor}"
            body = (For(f"{self.operand}_s", first, Const(each), body, "unrolled", note=note),)
        return (If(number.eq(0), body),) if blocks > 1 and not apart and slow is None else body

    def _box(
        self, positions: dict[str, Int], places: dict[str, Int], sides: list[int], index: tuple[Int, ...]
    ) -> TileCopy:
        """One box of the slice (`sides`: elements along the axes of its rows, the fastest first), or the pixels of one,
        from `places` of the slice on."""
        nest, layout = self.nest, self.layout
        name, tensor = f"{self.buffer.name}_map", nest.mapping.operands[self.operand].tensor
        _, _, chunks, chunk = layout.shape
        pixels = pixels_of(nest, self.operand) if no_box(nest, self.operand) else None
        if pixels is None:
            extents, strides, coordinates, kept = self._seen(positions, places)
            box = (chunks * chunk, *(n for n, keep in zip(sides, kept, strict=True) if keep))
            box += (1,) * (len(extents) - len(box))
            seen = TensorMap(name, tensor, extents, strides, box, layout.swizzle)
            return self._received(TileCopy(seen, coordinates, self.buffer.name, index))
        channels = layout.axes[-1]
        extents, strides = walked(pixels)
        seen = TensorMap(name, tensor, extents, strides, (chunks * chunk, prod(sides)), layout.swizzle, walk_of(pixels))
        start = {a: positions[a] + places.get(a, Const(0)) for a in positions}
        late = self.grid.gathered and self.grid.slices % self.grid.split != 0
        coordinates, inside = corner(nest, pixels, channels, start, self.grid.cluster > 1, late)
        return self._received(TileCopy(seen, coordinates, self.buffer.name, index, inside=inside))

    def _received(self, box: TileCopy) -> TileCopy:
        """A box for all blocks of a cluster that need it."""
        to = self.receivers
        return replace(box, blocks=to.count, first=to.first, apart=to.apart) if to.count > 1 else box

    def _seen(
        self, positions: dict[str, Int], places: dict[str, Int]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Int, ...], list[bool]]:
        """Extents, strides and coordinates of a box's map, two dimensions at least; which axes of the rows, the fastest
        first, are dimensions of it: those with several elements in the tensor or in the slice."""
        layout, offset = self.layout, element_offset(self.nest, self.operand)
        major, *others = reversed(list(zip(layout.axes, layout.extents, strict=True)))
        extents, strides, kept = [major[0].extent], [], []
        coordinates = [positions[major[0].name] + places[major[0].name]]
        for axis, side in others:
            kept.append(axis.extent > 1 or side > 1)
            if kept[-1]:
                steps = along(offset, axis)
                extents.append(axis.extent)
                strides.append(int(steps[1] - steps[0]) if len(steps) > 1 else layout.chunk)
                coordinates.append(positions[axis.name] + places.get(axis.name, Const(0)))
        if len(extents) == 1:
            extents, strides, coordinates = [*extents, 1], [layout.chunk], [*coordinates, Const(0)]
        return tuple(extents), tuple(strides), tuple(coordinates), kept

    def positions(self, work: BlockWork, reduction: dict[str, Int]) -> dict[str, Int]:
        """Where a slice begins along every axis, in elements."""
        nest, grid = self.nest, self.grid
        positions: dict[str, Int] = {a.name: Const(0) for a in nest.axes}
        positions |= {n: p.unit * nest.by_name[n].unit for n, p in grid.outside_places(work).items()}
        positions |= {n: unit * nest.by_name[n].unit for n, unit in reduction.items()}
        for axis in grid.pair:
            positions[axis.name] = grid.first(axis, work) * axis.unit
        return positions

    def element(self, work: BlockWork, reduction: dict[str, Int], place: dict[str, Int]) -> tuple[Value, Bool]:
        """The tensor's element at a place of the slice, or the value that is computed there, and where there is one."""
        nest, positions = self.nest, self._places(work, reduction, place)
        valid: list[Bool] = [positions[a.name] < a.extent for a in self.layout.axes if self.partial(a)]
        axes = nest.at(positions)
        valid.append(substitute_bool(nest.guarded[self.operand], axes))
        if self.computed is not None:
            return place_value(self.computed, axes), all_of(*valid)
        read = nest.mapping.operands[self.operand]
        return Read(read.tensor, place_index(read.index, axes), self.buffer.dtype), all_of(*valid)

    def _places(self, work: BlockWork, reduction: dict[str, Int], place: dict[str, Int]) -> dict[str, Int]:
        """Positions along the nest's axes of a place of the slice."""
        positions = self.positions(work, reduction)
        return positions | {a.name: positions[a.name] + place[a.name] for a in self.layout.axes}

    def _axes(self, work: BlockWork, reduction: dict[str, Int], place: dict[str, Int]) -> dict[str, Int]:
        """The same along the program's axes."""
        return self.nest.at(self._places(work, reduction, place))

    def partial(self, axis: NestAxis) -> bool:
        units = self.size if axis is self.nest.depth else self.grid.tile.get(axis.name, 1)
        beyond = axis is self.nest.depth and self.grid.gathered and self.grid.slices % self.grid.split != 0
        return beyond or axis.extent % (units * axis.unit) != 0

    # -- reading ----------------------------------------------------------------------------------------------------

    def source(self, local: dict[str, Int], base: Int, slot: Int) -> SharedSource:
        return SharedSource(self, local, base, slot)


def _cut(sides: list[int], blocks: int) -> int | None:
    """The slowest dimension of a box's rows (of `sides`, the fastest first), if blocks can share it in whole eights of
    rows."""
    slow = next((k for k in reversed(range(len(sides))) if sides[k] > 1), None)
    if blocks == 1 or slow is None or sides[slow] % blocks:
        return None
    return slow if prod(sides[:slow]) * (sides[slow] // blocks) % 8 == 0 else None


@dataclass(frozen=True)
class SharedSource:
    """A slice as registers are filled from it. `local` is the worker's own tile along each axis of the pair, `base` the
    slice's first depth unit, `slot` its place among the stages."""

    slices: SharedSlices
    local: dict[str, Int]
    base: Int
    slot: Int

    def index(self, at: dict[str, Position], element: Int) -> tuple[Int, ...]:
        """Where a fragment's element lies."""
        nest, layout = self.slices.nest, self.slices.layout
        place = self._place(at, nest.lane_coordinates(self.slices.operand, element))
        inside = layout.index(layout.row(place), place[layout.axes[-1].name])
        return self.slices.at(RANK, self.slot, inside)

    def _place(self, at: dict[str, Position], lanes: Mapping[str, Int]) -> dict[str, Int]:
        """The place in the slice of an element whose coordinates in the instruction's tile are `lanes`."""
        place: dict[str, Int] = {}
        for axis in self.slices.layout.axes:
            unit = self.local.get(axis.name, Const(0))
            if axis is self.slices.nest.depth:
                unit = at[axis.name].unit - self.base
            place[axis.name] = unit * axis.unit + lanes.get(axis.intrinsic_axis or "", Const(0))
        return place

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The fragment's element; zeros are there already where the program has none."""
        return Read(self.slices.buffer.name, self.index(at, element), self.slices.buffer.dtype), TRUE

    def descriptor(self, at: dict[str, Position]) -> RegisterRef:
        """The fragment as an instruction takes it from shared memory."""
        nest, layout = self.slices.nest, self.slices.layout
        spec = nest.intrinsic.operands[self.slices.operand]
        _, rows, chunks, chunk = layout.shape
        place = self._place(at, {})
        row, number = layout.row(place), place[layout.axes[-1].name] // chunk
        start = (number // chunks * rows + row) * (chunks * chunk) + number % chunks * chunk
        if self.slices.stages > 1:
            start = self.slot * (self.slices.buffer.elements // self.slices.turns) + start
        across, span = layout.axes[-1] is not nest.depth, chunks * CHUNK_BYTES
        if layout.swizzle:
            leading, stride = (rows * span, 8 * span) if across else (CHUNK_BYTES, 8 * span)
        else:
            leading, stride = (8 * span, rows * span) if across else (rows * span, 8 * span)
        found = Descriptor(start, layout.swizzle, across, leading, stride)
        index = self.index(at, Var(LANE))
        return RegisterRef(self.slices.buffer.name, index, Lane(LANE, spec.elements), found)


def vector_bytes(ctx: Context, grid: TileGrid) -> int:
    """Bytes of one piece of a copy: TMA moves chunks."""
    return 16 if COPY.of(grid.names, ctx.values) == BULK else VECTOR.of(grid.names, ctx.values)
