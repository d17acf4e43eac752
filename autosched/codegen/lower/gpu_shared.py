"""Slices in shared memory: how they are filled, and how registers and instructions read them."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen.kernel import Assign, Buffer, For, Lane, RegisterRef, Stmt
from autosched.codegen.lower.context import Context
from autosched.codegen.lower.gpu_grid import RANK, Grid, Work
from autosched.codegen.lower.panels import or_zero
from autosched.codegen.lower.places import LANE, Position
from autosched.codegen.lower.rename import place_index
from autosched.ir.value import Read, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of
from autosched.logic.expr import substitute_bool
from autosched.tiling.nest import Nest, NestAxis
from autosched.tiling.steps.gpu_copy import BULK
from autosched.tiling.steps.gpu_layout import SharedLayout, chunk_elements, slice_axes


@dataclass(frozen=True)
class SharedSlices:
    """An operand's slices in a block's shared memory: `stages` of them, for each block of a cluster. `common` is
    whether all blocks of a cluster need the same slice."""

    nest: Nest
    operand: str
    grid: Grid
    layout: SharedLayout
    buffer: Buffer
    size: int  # depth units of a slice
    stages: int
    common: bool

    @staticmethod
    def declare(nest: Nest, operand: str, grid: Grid, ctx: Context) -> SharedSlices:
        """The buffer, as the row says."""
        spec, names, depth = nest.intrinsic.operands[operand], grid.names, nest.depth
        assert depth is not None
        size, stages = ctx.values[names.block(depth)], ctx.values.get(names("stages"), 1)
        axes = slice_axes(nest, operand)
        extents = tuple(a.unit * (size if a is depth else grid.tile.get(a.name, 1)) for a in axes)
        layout = SharedLayout(axes, extents, chunk_elements(spec.dtype.bits), ctx.values.get(names("swizzle"), 0))
        outer = (*([grid.cluster] if grid.cluster > 1 else []), *([stages] if stages > 1 else []))
        tensor = nest.mapping.operands[operand].tensor
        buffer = ctx.declare(f"{tensor}_shared", spec.dtype, (*outer, *layout.shape), "shared", tensor)
        own = {a.name for a in nest.operand_axes(operand)}
        common = grid.cluster > 1 and not any(n > 1 and name in own for name, n in grid.shape.items())
        return SharedSlices(nest, operand, grid, layout, buffer, size, stages, common)

    def at(self, rank: Int, slot: Int, inside: tuple[Int, ...]) -> tuple[Int, ...]:
        outer: list[Int] = [rank] if self.grid.cluster > 1 else []
        return (*outer, *([slot] if self.stages > 1 else []), *inside)

    # -- filling ----------------------------------------------------------------------------------------------------

    def fill(self, work: Work, reduction: dict[str, Int], slot: Int, vector: int, worker: Int, workers: int) -> Stmt:
        """One worker's share of copying the slice at `reduction` (units along each reduction axis); zeros where the
        program has no element. Blocks of a cluster share the work on a common slice and write it for all."""
        nest, layout = self.nest, self.layout
        spec = nest.intrinsic.operands[self.operand]
        wide = max(1, vector * 8 // spec.dtype.bits) if vector else 1
        pieces = -(-layout.extents[-1] // wide)
        piece = Var(f"{self.operand}_f")
        row_number = piece // pieces
        element: Int = piece % pieces * wide
        if wide > 1:
            element = element + Var(LANE)
        place: dict[str, Int] = {layout.axes[-1].name: element}
        below = layout.rows
        for axis, extent in zip(layout.axes[:-1], layout.extents[:-1], strict=True):
            below //= extent
            number = row_number // below if below > 1 else row_number
            place[axis.name] = number % extent if extent > 1 else Const(0)
        value, valid = self.element(work, reduction, place)
        if layout.extents[-1] % wide:
            valid = all_of(valid, element < layout.extents[-1])
        inside = layout.index(layout.row(place), element)
        lane = Lane(LANE, wide) if wide > 1 else None
        read = or_zero(value, valid)
        body: tuple[Stmt, ...] = (Assign(self.buffer.name, self.at(RANK, slot, inside), read, lane),)
        first, step = worker, workers
        if self.common:
            to = Var("to")
            store = Assign(self.buffer.name, self.at(to, slot, inside), read, lane)
            body = (For("to", Const(0), Const(self.grid.cluster), (store,), "unrolled", note="multicast"),)
            first, step = worker * self.grid.cluster + RANK, workers * self.grid.cluster
        tensor = nest.mapping.operands[self.operand].tensor
        return For(piece.name, first, Const(layout.rows * pieces), body, "serial", step, f"copy a slice of {tensor}")

    def element(self, work: Work, reduction: dict[str, Int], place: dict[str, Int]) -> tuple[Read, Bool]:
        """The tensor's element at a place of the slice, and where there is one."""
        nest, grid = self.nest, self.grid
        positions: dict[str, Int] = {a.name: Const(0) for a in nest.axes}
        positions |= {n: p.unit * nest.by_name[n].unit for n, p in grid.outside_places(work).items()}
        positions |= {n: unit * nest.by_name[n].unit for n, unit in reduction.items()}
        for axis in grid.pair:
            positions[axis.name] = grid.first(axis, work) * axis.unit
        valid: list[Bool] = []
        for axis in self.layout.axes:
            positions[axis.name] = positions[axis.name] + place[axis.name]
            if self.partial(axis):
                valid.append(positions[axis.name] < axis.extent)
        axes = nest.at(positions)
        read = nest.mapping.operands[self.operand]
        valid.append(substitute_bool(nest.guarded[self.operand], axes))
        return Read(read.tensor, place_index(read.index, axes), self.buffer.dtype), all_of(*valid)

    def partial(self, axis: NestAxis) -> bool:
        units = self.size if axis is self.nest.depth else self.grid.tile.get(axis.name, 1)
        return axis.extent % (units * axis.unit) != 0

    # -- reading ----------------------------------------------------------------------------------------------------

    def source(self, local: dict[str, Int], base: Int, slot: Int) -> SharedSource:
        return SharedSource(self, local, base, slot)


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
        lanes = nest.lane_coordinates(self.slices.operand, element)
        place: dict[str, Int] = {}
        for axis in layout.axes:
            unit = self.local.get(axis.name, Const(0))
            if axis is nest.depth:
                unit = at[axis.name].unit - self.base
            place[axis.name] = unit * axis.unit + lanes.get(axis.intrinsic_axis or "", Const(0))
        inside = layout.index(layout.row(place), place[layout.axes[-1].name])
        return self.slices.at(RANK, self.slot, inside)

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The fragment's element; zeros are there already where the program has none."""
        return Read(self.slices.buffer.name, self.index(at, element), self.slices.buffer.dtype), TRUE

    def descriptor(self, at: dict[str, Position]) -> RegisterRef:
        """The fragment as an instruction takes it from shared memory."""
        spec = self.slices.nest.intrinsic.operands[self.slices.operand]
        return RegisterRef(self.slices.buffer.name, self.index(at, Var(LANE)), Lane(LANE, spec.elements))


def vector_bytes(ctx: Context, grid: Grid) -> int:
    """Bytes of one piece of a copy: the copy engine moves chunks."""
    return 16 if ctx.values.get(grid.names("copy"), 0) == BULK else ctx.values.get(grid.names("vector"), 0)


__all__ = ["SharedSlices", "SharedSource", "vector_bytes"]
