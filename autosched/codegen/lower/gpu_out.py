"""How a block's results leave it: from registers, as rows through shared memory, or as shares for a second grid."""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.kernel import Assign, Async, Buffer, For, If, Lane, Stmt, Wait
from autosched.codegen.lower.context import Context
from autosched.codegen.lower.epilogue import epilogue
from autosched.codegen.lower.gpu_grid import RANK, Grid, Work
from autosched.codegen.lower.gpu_micro import GpuMicro
from autosched.codegen.lower.places import LANE, Position
from autosched.codegen.lower.rename import place_index
from autosched.ir.value import Read
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of
from autosched.logic.expr import substitute_bool
from autosched.tiling.nest import Nest
from autosched.tiling.plan import TensorPart
from autosched.tiling.steps.gpu_epilogue import BULK_STORE, DIRECT, row_axis
from autosched.tiling.steps.gpu_operand import CHUNK_BYTES, stored_bytes


class Out:
    """The stores of one part under one row."""

    def __init__(self, part: TensorPart, grid: Grid, ctx: Context) -> None:
        self.part, self.nest, self.grid, self.ctx = part, part.nest, grid, ctx
        self.kind = ctx.values.get(grid.names("epilogue"), DIRECT)
        self.tensor, self.index = self._output()
        self.tile: Buffer | None = None
        if self.kind != DIRECT:
            last = row_axis(self.nest, grid.pair)
            self.axes = (*(a for a in grid.pair if a is not last), last)
            shape = tuple(grid.tile[a.name] * a.unit for a in self.axes)
            outer = (grid.cluster,) if grid.cluster > 1 else ()
            dtype = ctx.tensor(self.tensor).dtype
            self.tile = ctx.declare(f"{self.tensor}_tile", dtype, (*outer, *shape), "shared", self.tensor)

    def _output(self) -> tuple[str, tuple[Int, ...]]:
        """The tensor that the part writes last, and its subscripts in terms of the nest's program axes."""
        target = self.nest.stage.assign
        for fused in self.part.epilogue:
            if fused.stage.assign.tensor != target.tensor:
                here: dict[str, Int] = {consumer: Var(producer) for consumer, producer in fused.axes.items()}
                return fused.stage.assign.tensor, place_index(fused.stage.assign.index, here)
        return target.tensor, tuple(i for i in target.index if isinstance(i, Int))

    # -- of a whole sum -----------------------------------------------------------------------------------------------

    def leave(
        self, micro: GpuMicro, at: dict[str, Position], work: Work, local: dict[str, Int]
    ) -> tuple[tuple[Stmt, ...], ...]:
        """Phases of the block's workers (with a barrier between them) that finish a tile."""
        counts = self.grid.register
        zero = at | {a.name: Position(None, Const(0)) for a in self.nest.reduction}
        dropped = micro.drop(zero, counts, TRUE)
        if self.tile is None:
            return ((*dropped, *micro.finish(zero, counts, TRUE)),)
        return (*dropped, *self._into_tile(micro, zero, local)), self._out_of_tile(work)

    def _into_tile(self, micro: GpuMicro, at: dict[str, Position], local: dict[str, Int]) -> tuple[Stmt, ...]:
        """What finishes a register tile, but stores to the tensor go to its tile instead."""
        assert self.tile is not None
        axes, valid = micro.output(at)
        target, lane = self.nest.stage.assign, self._lane(micro)
        body: list[Stmt] = []
        for fused in self.part.epilogue:
            behind = epilogue(fused, target, micro.acc_read(), axes, lane, valid, self.ctx)
            body += micro.over(micro.tiled, self.grid.register, behind)
        if self.part.keep:
            store = Assign(target.tensor, place_index(target.index, axes), micro.acc_read(), lane, valid)
            body += micro.over(micro.tiled, self.grid.register, (store,))
        acc = self.nest.intrinsic.accumulator
        element: Int = Var(LANE) if acc.elements > 1 else Const(0)
        lanes = self.nest.lane_coordinates(acc.name, element)
        place = [local[a.name] * a.unit + lanes.get(a.intrinsic_axis or "", Const(0)) for a in self.axes]
        index = (*([RANK] if self.grid.cluster > 1 else []), *place)

        def visit(stmt: Stmt) -> Stmt:
            match stmt:
                case For() | If():
                    return replace(stmt, body=tuple(map(visit, stmt.body)))
                case Assign(buffer) if buffer == self.tensor:
                    return replace(stmt, buffer=self.tile.name if self.tile else "", index=index)
                case _:
                    return stmt

        return tuple(map(visit, body))

    def _out_of_tile(self, work: Work) -> tuple[Stmt, ...]:
        assert self.tile is not None
        size = self.tile.dtype.bytes
        extents = [self.grid.tile[a.name] * a.unit for a in self.axes]
        most = stored_bytes(self.nest, self.axes[-1], size) or size
        wide = CHUNK_BYTES // size if most == CHUNK_BYTES and extents[-1] % (CHUNK_BYTES // size) == 0 else 1
        pieces = extents[-1] // wide
        piece = Var("out_f")
        last: Int = piece % pieces * wide
        if wide > 1:
            last = last + Var(LANE)
        inside = [*([piece // pieces] if len(extents) > 1 else []), last]
        place = dict(zip([a.name for a in self.axes], inside, strict=True))
        positions: dict[str, Int] = {a.name: Const(0) for a in self.nest.axes}
        positions |= {n: p.unit * self.nest.by_name[n].unit for n, p in self.grid.outside_places(work).items()}
        valid: list[Bool] = []
        for axis in self.grid.pair:
            positions[axis.name] = self.grid.first(axis, work) * axis.unit + place[axis.name]
            if axis.extent % (self.grid.tile[axis.name] * axis.unit):
                valid.append(positions[axis.name] < axis.extent)
        axes = self.nest.at(positions)
        valid.append(substitute_bool(self.nest.written, axes))
        rank = [RANK] if self.grid.cluster > 1 else []
        value = Read(self.tile.name, (*rank, *inside), self.tile.dtype)
        lane = Lane(LANE, wide) if wide > 1 else None
        store = Assign(self.tensor, place_index(self.index, axes), value, lane, all_of(*valid))
        total = pieces * (extents[0] if len(extents) > 1 else 1)
        worker, workers = worker_of(self.grid, self.nest)
        if self.kind != BULK_STORE:
            return (For(piece.name, worker, Const(total), (store,), "serial", workers, f"rows of {self.tensor}"),)
        whole = For(piece.name, Const(0), Const(total), (store,), "serial", 1, f"a tile of {self.tensor}")
        return (If(worker.eq(0), (Async((whole,), "", Const(0)), Wait(0))),)

    # -- of a share ---------------------------------------------------------------------------------------------------

    def shares(self) -> Buffer:
        """Memory for the shares of all tiles: by share, tile, block of the cluster, worker, then as in registers."""
        grid, acc = self.grid, self.nest.intrinsic.accumulator
        _, workers = worker_of(grid, self.nest)
        shape = (grid.most_shares, grid.tiles, grid.cluster, workers, *grid.register.values(), acc.elements)
        return self.ctx.declare(f"{self.nest.stage.assign.tensor}_shares", acc.dtype, shape, "workspace")

    def leave_share(self, micro: GpuMicro, work: Work, shares: Buffer) -> tuple[Stmt, ...]:
        """A worker's sums of its share of the reduction, to memory."""
        assert work.tile is not None
        store = Assign(shares.name, self._share(micro, work.share, work.tile), micro.acc_read(), self._lane(micro))
        return micro.over(micro.tiled, self.grid.register, (store,))

    def add_shares(self, micro: GpuMicro, tile: Int, shares: Buffer) -> tuple[Stmt, ...]:
        """All shares of a tile, added to a worker's accumulators."""
        read = Read(shares.name, self._share(micro, Var("from"), tile), shares.dtype)
        add = micro.add(read, self.grid.register)
        return (For("from", Const(0), self.grid.shares(tile), add, note="shares of the reduction"),)

    def _share(self, micro: GpuMicro, share: Int, tile: Int) -> tuple[Int, ...]:
        worker, _ = worker_of(self.grid, self.nest)
        rank: Int = RANK if self.grid.cluster > 1 else Const(0)
        registers = micro.register_index(micro.tiled)
        return (share, tile, rank, worker, *registers, micro.element(micro.accumulator.elements))

    @staticmethod
    def _lane(micro: GpuMicro) -> Lane | None:
        return micro.lane(micro.accumulator.elements)


def worker_of(grid: Grid, nest: Nest) -> tuple[Int, int]:
    """The worker's number in its block, and how many there are."""
    count = 1
    for n in grid.along.values():
        count *= n
    return Var(worker_kind(nest)), count


def worker_kind(nest: Nest) -> str:
    """The kind of the loop over workers."""
    return nest.intrinsic.scope if nest.intrinsic.scope in ("warp", "warpgroup") else "thread"


__all__ = ["Out", "worker_kind", "worker_of"]
