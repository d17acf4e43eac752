"""Lowering of a tensor part for a GPU: a grid of blocks, workers (threads, warps, warpgroups) of a block, one register
tile each.

Operands come straight from global memory, or in slices of the depth through shared memory. Each phase of a block
(start, copy, compute, finish) is a loop over its workers; such loops one after the other are separated by a barrier,
and accumulators, which outlive a phase, have the worker as their first index. How slices are fetched is in
`slice_pipeline`, which block does what in `grid`, how results leave in `results`.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.operands.sources import MemorySource, OperandSource
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.lower.common.register_tile import DepthRange
from autosched.codegen.lower.gpu.computed_fragment import ComputedFragment
from autosched.codegen.lower.gpu.grid import BLOCK, RANK, BlockWork, TileGrid
from autosched.codegen.lower.gpu.results import TileResults, worker_kind, worker_of
from autosched.codegen.lower.gpu.shared_slices import SharedSlices
from autosched.codegen.lower.gpu.slice_pipeline import SlicePipeline, without_barriers
from autosched.codegen.lower.gpu.worker_tile import WorkerTile
from autosched.codegen.tree.kernel import Buffer, For, Stmt
from autosched.ir.value import Literal
from autosched.logic import TRUE, Const, Int, Var
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps.cpu.pack import DIRECT
from autosched.tiling.steps.gpu.block_results import DIRECT as DIRECT_STORE
from autosched.tiling.steps.gpu.block_results import EPILOGUE
from autosched.tiling.steps.gpu.block_tile import gpu_pair
from autosched.tiling.steps.gpu.occupancy import REGISTER_LIMIT
from autosched.tiling.steps.gpu.operands.operand_sources import DESCRIPTOR, GLOBAL, stage_of


def lower_gpu(part: TensorPart, ctx: Context, cores: int) -> tuple[Stmt, ...]:
    """The loops of one tensor part, block loops outermost."""
    return GpuNest(part, ctx, cores).emit()


class GpuNest:
    """One nest under one row of its GPU space."""

    def __init__(self, part: TensorPart, ctx: Context, cores: int) -> None:
        self.part, self.nest, self.names, self.ctx = part, part.nest, part.names, ctx
        self.pair = gpu_pair(self.nest)
        self.grid = TileGrid(self.nest, self.pair, self.names, ctx, cores)
        self.worker, self.count = worker_of(self.grid, self.nest)
        kinds = {o.name: stage_of(o.name).of(self.names, ctx.values) for o in self.nest.intrinsic.inputs}
        if self.nest.depth is None:
            kinds = dict.fromkeys(kinds, GLOBAL)
        self.direct = frozenset(o for o, kind in kinds.items() if kind == DESCRIPTOR)
        shared = [o for o, kind in kinds.items() if kind != GLOBAL]
        shared.sort(key=lambda o: o in self.nest.computed)  # copies that run on are started first
        self.slices = {o: SharedSlices.declare(self.nest, o, self.grid, ctx) for o in shared}

    def emit(self) -> tuple[Stmt, ...]:
        micro, out = self.micro(), TileResults(self.part, self.grid, self.ctx)
        if self.grid.split == 1 or self.grid.gathered:
            return self.limited(self.grid.loops(self.block(micro, out, None)))
        shares = out.shares()
        first = self.limited(self.grid.loops(self.block(micro, out, shares)))
        return (*first, *self.fixup(out, shares))

    def limited(self, grid: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The grid, whose threads may take as many registers as the space says."""
        registers = REGISTER_LIMIT.of(self.names, self.ctx.limits)
        return tuple(replace(s, registers=registers) if isinstance(s, For) else s for s in grid)

    def micro(self) -> WorkerTile:
        owners: list[tuple[Int, int]] = [(self.worker, self.count)] if self.slices or self.phases > 1 else []
        if owners and self.grid.cluster > 1:
            owners = [(RANK, self.grid.cluster), *owners]
        sources: dict[str, OperandSource] = {}
        for o in self.nest.intrinsic.inputs:
            if o.name in self.nest.computed:
                sources[o.name] = ComputedFragment.of(self.nest, o.name, self.ctx)
                continue
            tensor = self.ctx.tensor(self.nest.mapping.operands[o.name].tensor)
            sources[o.name] = MemorySource(self.nest, o.name, DIRECT, tensor)
        return WorkerTile.of(self.part, sources, self.ctx, self.pair, tuple(owners), self.direct)

    @property
    def phases(self) -> int:
        """Loops over workers that a tile's accumulators live through."""
        return 1 if EPILOGUE.of(self.names, self.ctx.values) == DIRECT_STORE else 2

    def block(self, micro: WorkerTile, out: TileResults, shares: Buffer | None) -> tuple[Stmt, ...]:
        """What a block does."""
        init = self.nest.stage.init
        zero = shares is not None or (isinstance(init, Literal) and init.value == 0)
        pipeline = SlicePipeline(self.nest, self.grid, self.slices, micro, self.ctx, zero) if self.slices else None

        def start(work: BlockWork) -> tuple[Stmt, ...]:
            if pipeline is not None and pipeline.from_zero:
                return ()
            at = self.positions(work)
            zero = at | {a.name: Position(None, Const(0)) for a in self.nest.reduction}
            return micro.cleared(self.grid.register) if shares else micro.start(zero, self.grid.register, TRUE)

        def finish(work: BlockWork) -> tuple[tuple[Stmt, ...], ...]:
            if self.grid.gathered:
                return out.gather(micro, self.positions(work), work, self.local())
            if shares:
                return (out.leave_share(micro, work, shares),)
            return out.leave(micro, self.positions(work), work, self.local())

        after = without_barriers(self.workers(out.stored())) if out.stored() and not shares else ()
        if pipeline is None:
            return (*self.grid.launch(lambda work: self.alone(work, micro, start(work), finish(work))), *after)
        apart = out.apart and not shares
        return pipeline.emit(self.positions, self.local(), start, finish, self.workers, after, apart)

    def alone(
        self, work: BlockWork, micro: WorkerTile, start: tuple[Stmt, ...], finish: tuple[tuple[Stmt, ...], ...]
    ) -> tuple[Stmt, ...]:
        """A tile whose operands come straight from memory."""
        depth = self.nest.depth
        whole = DepthRange(Const(0), Const(depth.units), True, True) if depth else None
        at = self.positions(work) | {a.name: Position(None, Const(0)) for a in self.nest.reduction}
        first, *rest = finish
        body = (*start, *micro.reduce(at, self.grid.register, whole), *first)
        return tuple(stmt for phase in (body, *rest) for stmt in self.workers(phase))

    def fixup(self, out: TileResults, shares: Buffer) -> tuple[Stmt, ...]:
        """A second grid: the shares of each tile are added to what the output starts with."""
        plain = TileGrid(self.nest, self.pair, self.names, self.ctx, 1)
        work = BlockWork(BLOCK, Const(0), Const(0), Const(0), Const(0))
        micro = self.micro()
        at = self.positions(work)
        zero = at | {a.name: Position(None, Const(0)) for a in self.nest.reduction}
        start = (*micro.start(zero, plain.register, TRUE), *out.add_shares(micro, BLOCK, shares))
        first, *rest = out.leave(micro, at, work, self.local())
        body = tuple(stmt for phase in ((*start, *first), *rest) for stmt in self.workers(phase))
        after = self.workers(out.stored()) if out.stored() else ()
        return self.grid.loops((*body, *after), self.grid.tiles)

    # -- where things are ------------------------------------------------------------------------------------------

    def local(self) -> dict[str, Int]:
        """The worker's intrinsic tile along each axis of the pair, counted from the block's first. A warp's or
        warpgroup's tiles follow each other; those of threads take turns, so that neighbours of a warp read and write
        neighbours in memory, and rows of different banks."""
        found: dict[str, Int] = {}
        below, along = self.count, self.grid.along
        for axis in self.pair:
            below //= along[axis.name]
            number = self.worker // below if below > 1 else self.worker
            if axis is not self.pair[0]:
                number = number % along[axis.name]
            mine: Int = number if along[axis.name] > 1 else Const(0)
            count = self.grid.register[axis.name]
            own: Int = Var(f"{identifier(axis.name)}r") if count > 1 else Const(0)
            if worker_kind(self.nest) == "thread":
                found[axis.name] = own * along[axis.name] + mine
            else:
                found[axis.name] = mine * count + own
        return found

    def positions(self, work: BlockWork) -> dict[str, Position]:
        """Every spatial axis, in terms of the block's work, the worker and the register tile's own loops."""
        local = self.local()
        at = self.grid.outside_places(work)
        for axis in self.pair:
            at[axis.name] = Position(None, self.grid.first(axis, work) + local[axis.name], self.partial(axis))
        return at

    def partial(self, axis: NestAxis) -> bool:
        """Whether the grid's tiles reach past the axis's end."""
        return axis.extent % (self.grid.tile[axis.name] * axis.unit) != 0

    def workers(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A loop over the workers of a block, or of all blocks of a cluster."""
        loop = For(str(self.worker), Const(0), Const(self.count), body, worker_kind(self.nest))
        if self.grid.cluster == 1:
            return (loop,)
        return (For(str(RANK), Const(0), Const(self.grid.cluster), (loop,), "cluster"),)
