"""Lowering of a tensor part for a GPU: a grid of blocks, workers (warps or threads) of a block, one register tile each.

Operands come straight from global memory, or through shared memory: then the block works slice by slice of the depth,
and each phase (start, copy a slice, compute on it, finish) is a loop over its workers. Such loops side by side are
separated by a barrier, and accumulators, which outlive a phase, have the worker as their first index.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen.kernel import Assign, Buffer, For, Lane, Stmt
from autosched.codegen.lower.context import Context, identifier
from autosched.codegen.lower.microkernel import DepthRange, Micro
from autosched.codegen.lower.operands import LANE, Loads, Position, Source, or_zero
from autosched.codegen.lower.simplify import bind
from autosched.ir.value import Read, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, minimum
from autosched.tiling.nest import Nest, NestAxis
from autosched.tiling.plan import TensorPart
from autosched.tiling.steps.gpu_stage import SHARED, stage_name
from autosched.tiling.steps.gpu_tile import gpu_pair, workers_name
from autosched.tiling.steps.pack import DIRECT

BLOCKS = ("block.x", "block.y")


@dataclass(frozen=True)
class Staged:
    """An operand's slice in shared memory: whole fragments, one after the other, in the order of use. `local` is the
    block's own tile number along each axis of the pair, `base` the slice's first depth unit."""

    nest: Nest
    operand: str
    buffer: Buffer
    local: dict[str, Int]
    base: Int

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The fragment's element; zeros are there already where the program has none."""
        depth = self.nest.depth
        assert depth is not None
        mine = self.nest.operand_axes(self.operand)
        index = [i for name, i in self.local.items() if self.nest.by_name[name] in mine]
        return Read(self.buffer.name, (*index, at[depth.name].unit - self.base, element), self.buffer.dtype), TRUE


def lower_gpu(part: TensorPart, ctx: Context) -> tuple[Stmt, ...]:
    """The loops of one tensor part, block loops outermost."""
    return GpuNest(part, ctx).emit()


class GpuNest:
    """One nest under one row of its GPU space."""

    def __init__(self, part: TensorPart, ctx: Context) -> None:
        self.part, self.nest, self.names, self.ctx = part, part.nest, part.names, ctx
        self.pair = gpu_pair(self.nest)
        self.kind = "warp" if self.nest.intrinsic.scope == "warp" else "thread"
        self.worker = Var(self.kind)
        self.register = {a.name: ctx.values[self.names.register(a)] for a in self.pair}
        self.along = {a.name: ctx.values[workers_name(self.nest, self.names, a)] for a in self.pair}
        self.count = 1
        for n in self.along.values():
            self.count *= n
        self.tile = {a.name: self.register[a.name] * self.along[a.name] for a in self.pair}
        self.staged = [
            o.name for o in self.nest.intrinsic.inputs if ctx.values.get(stage_name(self.names, o.name)) == SHARED
        ]

    def emit(self) -> tuple[Stmt, ...]:
        depth = self.nest.depth
        slice_units = self.ctx.values[self.names.block(depth)] if depth and self.staged else 0
        slice_var = Var(f"{identifier(depth.name)}s") if depth else Var("s")
        base: Int = slice_var if depth and slice_units < depth.units else Const(0)
        buffers = {name: self.shared(name, slice_units) for name in self.staged}
        sources: dict[str, Loads] = {}
        for o in self.nest.intrinsic.inputs:
            tensor = self.ctx.tensor(self.nest.mapping.operands[o.name].tensor)
            direct = Source(self.nest, o.name, DIRECT, tensor)
            staged = o.name in self.staged
            sources[o.name] = Staged(self.nest, o.name, buffers[o.name], self.local(), base) if staged else direct
        owner = (self.worker, self.count) if self.staged else None
        micro = Micro(self.part, sources, self.ctx, tiled=self.pair, owner=owner)
        at = self.positions()
        if not self.staged:
            whole = DepthRange(Const(0), Const(depth.units), True, True) if depth else None
            return self.grid(self.workers(micro.emit(at, self.register, whole)))
        assert depth is not None
        start = Position(None, Const(0))
        zero = at | {a.name: start for a in self.nest.reduction}
        body: list[Stmt] = [*self.workers(micro.start(zero, self.register, TRUE))]
        body += self.slices(at, depth, slice_units, base, buffers, micro)
        done = (*micro.drop(zero, self.register, TRUE), *micro.finish(zero, self.register, TRUE))
        body += self.workers(done)
        return self.grid(tuple(body))

    # -- where things are ------------------------------------------------------------------------------------------

    def local(self) -> dict[str, Int]:
        """The worker's intrinsic tile along each axis of the pair, counted from the block's first."""
        found: dict[str, Int] = {}
        below = self.count
        for axis in self.pair:
            below //= self.along[axis.name]
            number = self.worker // below if below > 1 else self.worker
            if axis is not self.pair[0]:
                number = number % self.along[axis.name]
            mine: Int = number if self.along[axis.name] > 1 else Const(0)
            found[axis.name] = mine * self.register[axis.name] + Var(f"{identifier(axis.name)}r")
        return found

    def positions(self) -> dict[str, Position]:
        """Every spatial axis, in terms of block numbers, the worker and the register tile's own loops."""
        at: dict[str, Position] = {}
        local = self.local()
        for axis in self.pair:
            first = Var(f"{identifier(axis.name)}b") * self.tile[axis.name]
            at[axis.name] = Position(None, first + local[axis.name], self.partial(axis))
        outside = [a for a in self.nest.spatial if a not in self.pair]
        below = 1
        for axis in reversed(outside):
            number: Int = Var("z") // below if below > 1 else Var("z")
            if axis is not outside[0]:
                number = number % axis.units
            at[axis.name] = Position(None, number if axis.units > 1 else Const(0))
            below *= axis.units
        return at

    def partial(self, axis: NestAxis) -> bool:
        """Whether the grid's tiles reach past the axis's end."""
        return axis.extent % (self.tile[axis.name] * axis.unit) != 0

    # -- loops ------------------------------------------------------------------------------------------------------

    def workers(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return (For(self.worker.name, Const(0), Const(self.count), body, self.kind),)

    def grid(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Blocks along the pair (the fastest is `block.x`), and along everything else as `block.z`."""
        order = list(self.pair)
        if self.ctx.values.get(self.names("raster"), 0) == 0:
            order.reverse()
        for axis, kind in zip(order, BLOCKS, strict=False):
            blocks = -(-axis.units // self.tile[axis.name])
            body = (
                For(f"{identifier(axis.name)}b", Const(0), Const(blocks), body, kind, note=f"blocks of {axis.name}"),
            )
        outside = [a for a in self.nest.spatial if a not in self.pair]
        total = 1
        for a in outside:
            total *= a.units
        if total == 1:
            return bind(body, {"z": Const(0)})
        return (For("z", Const(0), Const(total), body, "block.z", note=" ".join(a.name for a in outside)),)

    def slices(
        self,
        at: dict[str, Position],
        depth: NestAxis,
        size: int,
        base: Int,
        buffers: dict[str, Buffer],
        micro: Micro,
    ) -> tuple[Stmt, ...]:
        """Loops over the reduction, outermost first; inside, one slice is copied, then computed on."""
        others = [a for a in self.nest.reduction if a is not depth]

        def loop(k: int, at: dict[str, Position]) -> tuple[Stmt, ...]:
            if k < len(others):
                axis, var = others[k], f"{identifier(others[k].name)}u"
                here = Position(None, Var(var), axis.extent % axis.unit != 0)
                body = loop(k + 1, at | {axis.name: here})
                if axis.units == 1:
                    return bind(body, {var: Const(0)})
                return (For(var, Const(0), Const(axis.units), body),)
            upper: Int = minimum(base + size, depth.units) if depth.units % size else base + size
            if size >= depth.units:
                upper = Const(depth.units)
            copies = tuple(s for name in self.staged for s in self.copy(name, at, depth, size, base, buffers[name]))
            compute = micro.depth_loop(at, self.register, DepthRange(base, upper, True, True))
            body = (*self.workers(copies), *self.workers(compute))
            if isinstance(base, Var):
                note = f"slice of {depth.name}"
                return (For(base.name, Const(0), Const(depth.units), body, "serial", size, note),)
            return body

        return loop(0, at)

    # -- staging ----------------------------------------------------------------------------------------------------

    def shape(self, operand: str, size: int) -> tuple[int, ...]:
        """Fragments of a slice: tiles along the axes of the pair that the operand has, then depth units."""
        mine = self.nest.operand_axes(operand)
        return (*(self.tile[a.name] for a in self.pair if a in mine), size)

    def shared(self, operand: str, size: int) -> Buffer:
        spec = self.nest.intrinsic.operands[operand]
        tensor = self.nest.mapping.operands[operand].tensor
        return self.ctx.declare(
            f"{tensor}_shared", spec.dtype, (*self.shape(operand, size), spec.elements), "shared", tensor
        )

    def copy(
        self, operand: str, at: dict[str, Position], depth: NestAxis, size: int, base: Int, buffer: Buffer
    ) -> tuple[Stmt, ...]:
        """A worker's share of a slice, fragment by fragment, with zeros where the program has no element."""
        spec = self.nest.intrinsic.operands[operand]
        mine = self.nest.operand_axes(operand)
        shape = self.shape(operand, size)
        total = 1
        for n in shape:
            total *= n
        flat = Var(f"{operand}_f")
        place: list[Int] = []
        below = total
        for n in shape:
            below //= n
            number: Int = flat // below if below > 1 else flat
            place.append(number % n if place and n > 1 else number if n > 1 else Const(0))
        here = dict(at)
        for axis, number in zip([a for a in self.pair if a in mine], place, strict=False):
            first = Var(f"{identifier(axis.name)}b") * self.tile[axis.name]
            here[axis.name] = Position(None, first + number, self.partial(axis))
        here[depth.name] = Position(None, base + place[-1], depth.extent % (size * depth.unit) != 0)
        element: Int = Var(LANE) if spec.elements > 1 else Const(0)
        lane = Lane(LANE, spec.elements) if spec.elements > 1 else None
        tensor = self.ctx.tensor(self.nest.mapping.operands[operand].tensor)
        value, valid = Source(self.nest, operand, DIRECT, tensor).load(here, element)
        assert isinstance(value, Read)
        store = Assign(buffer.name, (*place, element), or_zero(value, valid), lane)
        note = f"copy a slice of {tensor.name}"
        return (For(flat.name, self.worker, Const(total), (store,), "serial", self.count, note),)
