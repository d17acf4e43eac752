"""How a block's results leave it: from registers, as rows through shared memory, or as shares for a second grid.

Rows are stored by all workers together, from one tile. TMA stores a tile for each worker: while one worker's results
leave, the others compute. A worker's tile holds all of its results, or one span of their rows at a time.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.fused_stages import epilogue
from autosched.codegen.lower.common.positions import LANE, Position
from autosched.codegen.lower.gpu.grid import RANK, BlockWork, TileGrid
from autosched.codegen.lower.gpu.worker_tile import WorkerTile
from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCopies,
    AsyncProxyFence,
    Buffer,
    For,
    If,
    Lane,
    Stmt,
    TensorMap,
    TileCopy,
    WaitCopies,
    WorkerBarrier,
)
from autosched.codegen.tree.rename import place_index
from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Read, Value, walk
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.outputs import output_accesses
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps.gpu.block_results import BOX_STORES, DIRECT, EPILOGUE, SPAN_BYTES, SPAN_STORE, row_axis
from autosched.tiling.steps.gpu.block_tile import SCOPE_WARPS
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES, along, output_offset, stored_bytes
from autosched.tiling.steps.gpu.operands.shared_layout import SWIZZLES, SharedLayout, chunk_elements
from autosched.tiling.steps.gpu.split_k import share_columns

MOST_WHOLE = 96
"""Registers of a thread for a share beside as many sums, of some 255 (a thread of `wgmma` n=256 has 128 sums)."""
OTHER_REGISTERS = 32
"""Of a thread that adds up shares: addresses and counters, a round figure."""

SPAN = "out_s"
"""The loop over spans of a worker's rows."""


class TileResults:
    """The stores of one part under one row."""

    def __init__(self, part: TensorPart, grid: TileGrid, ctx: Context) -> None:
        self.part, self.nest, self.grid, self.ctx = part, part.nest, grid, ctx
        self.kind = EPILOGUE.of(grid.names, ctx.values)
        self.output = output_accesses(part)[-1]
        self.tensor = self.output.tensor
        self.tile: Buffer | None = None
        self.turns = 1  # how often a worker fills its tile, each time with the next span of its rows
        if self.kind != DIRECT:
            last = row_axis(self.nest, self.output, grid.pair)
            self.axes = (*(a for a in grid.pair if a is not last), last)
            tiles = grid.register if self.apart else grid.tile
            extents = tuple(tiles[a.name] * a.unit for a in self.axes)
            outer: tuple[int, ...] = (grid.cluster,) if grid.cluster > 1 else ()
            outer += (worker_of(grid, self.nest)[1],) if self.apart else ()
            dtype = ctx.tensor(self.tensor).dtype
            if self.kind == SPAN_STORE:
                self.turns = extents[-1] * dtype.bytes // SPAN_BYTES
                extents = (*extents[:-1], extents[-1] // self.turns)
            self.layout = SharedLayout(self.axes, extents, chunk_elements(dtype.bits), tile_swizzle(extents[-1], dtype))
            shape = (*outer, *self.layout.shape)
            self.tile = ctx.declare(f"{self.tensor}_tile", dtype, shape, "shared", self.tensor)

    @property
    def apart(self) -> bool:
        """Whether each worker has a tile of its own."""
        return self.kind in BOX_STORES

    # -- of a whole sum -----------------------------------------------------------------------------------------------

    def leave(
        self, micro: WorkerTile, at: dict[str, Position], work: BlockWork, local: dict[str, Int]
    ) -> tuple[tuple[Stmt, ...], ...]:
        """Phases of the block's workers (with a barrier between them) that finish a tile."""
        counts = self.grid.register
        zero = at | {a.name: Position(None, Const(0)) for a in self.nest.reduction}
        dropped = micro.drop(zero, counts, TRUE)
        if self.tile is None:
            return ((*dropped, *micro.finish(zero, counts, TRUE)),)
        updated, filled = self._into_tile(micro, zero, local)
        if not self.apart:
            return (*dropped, *updated, *filled), self._rows_of_tile(work)
        stored = (*self.stored(), WorkerBarrier(), *filled, AsyncProxyFence(), WorkerBarrier(), self._box(work, local))
        if self.turns > 1:
            stored = (For(SPAN, Const(0), Const(self.turns), stored, "unrolled", note=f"spans of {self.tensor}"),)
        return ((*dropped, *updated, *stored),)

    def stored(self) -> tuple[Stmt, ...]:
        """A worker goes on once TMA has read its tile."""
        return (WaitCopies(0, engine=True),) if self.apart else ()

    def _into_tile(
        self, micro: WorkerTile, at: dict[str, Position], local: dict[str, Int]
    ) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
        """What finishes a register tile, once and for each span: fused stages that update registers run once. Stores to
        the tensor go to its tile instead. The tile holds elements outside of the tensor too, which do not leave it: a
        store that only reads registers needs no guard."""
        assert self.tile is not None
        axes, valid = micro.output(at)
        target, lane = self.nest.stage.assign, self._lane(micro)
        updated: list[Stmt] = []
        body: list[Stmt] = []
        for fused in self.part.epilogue:
            behind = epilogue(fused, target, micro.acc_read(), axes, lane, valid, self.ctx)
            # Behind the only store nothing reads registers any more.
            once = self.turns > 1 and behind[0].buffer != self.tensor and not body
            (updated if once else body).extend(micro.over(micro.tiled, self.grid.register, behind))
        if self.part.keep:
            store = Assign(target.tensor, place_index(target.index, axes), micro.acc_read(), lane, valid)
            body += micro.over(micro.tiled, self.grid.register, (store,))
        acc = self.nest.intrinsic.accumulator
        element: Int = Var(LANE) if acc.elements > 1 else Const(0)
        lanes = self.nest.lane_coordinates(acc.name, element)
        tiles = self._own() if self.apart else local
        place = [tiles[a.name] * a.unit + lanes.get(a.intrinsic_axis or "", Const(0)) for a in self.axes]
        row = self.layout.row(dict(zip([a.name for a in self.axes], place, strict=True)))
        wide, inside = self.layout.extents[-1], place[-1]
        here: Bool = TRUE
        if self.turns > 1:
            here, inside = (inside // wide).eq(Var(SPAN)), inside % wide
        index = (*self._whose(), *self.layout.index(row, inside))

        def visit(stmt: Stmt) -> Stmt:
            match stmt:
                case For() | If():
                    return replace(stmt, body=tuple(map(visit, stmt.body)))
                case Assign(buffer) if buffer == self.tensor:
                    valid = here if self._registers_only(stmt.value) else all_of(stmt.valid, here)
                    return replace(stmt, buffer=self.tile.name if self.tile else "", index=index, valid=valid)
                case _:
                    return stmt

        return tuple(updated), tuple(map(visit, body))

    def _registers_only(self, value: Value) -> bool:
        """Whether the value may be computed where the tensor has no element: it reads no memory and divides no
        integers."""
        parts = tuple(walk(value))
        outside = any(isinstance(p, Read) and self.ctx.buffers[p.tensor].scope != "register" for p in parts)
        return not outside and not any(isinstance(p, Arith) and p.op in ("//", "%") for p in parts)

    def _own(self) -> dict[str, Int]:
        """A worker's register tile along each axis, counted from its first."""
        counts = self.grid.register
        return {a: Var(f"{identifier(a)}r") if counts[a] > 1 else Const(0) for a in counts}

    def _whose(self) -> list[Int]:
        """The first subscripts of the tile: the cluster's block, the worker."""
        whose: list[Int] = [RANK] if self.grid.cluster > 1 else []
        return [*whose, worker_of(self.grid, self.nest)[0]] if self.apart else whose

    def _rows_of_tile(self, work: BlockWork) -> tuple[Stmt, ...]:
        """All workers store the tile's rows, in chunks where these are whole."""
        assert self.tile is not None
        worker, workers = worker_of(self.grid, self.nest)
        wide = CHUNK_BYTES // self.tile.dtype.bytes
        most = stored_bytes(self.nest, self.output, self.axes[-1], self.tile.dtype.bytes)
        whole = most == CHUNK_BYTES and self.layout.extents[-1] % wide == 0
        first = {a.name: self.grid.first(a, work) for a in self.grid.pair}
        return (self._rows(work, first, wide if whole else 1, worker, workers),)

    def _rows(
        self, work: BlockWork, first: dict[str, Int], wide: int, start: Int, step: int, beyond: Int = Const(0)
    ) -> For:
        """Stores of pieces of `wide` elements of the tile, whose first intrinsic tile is `first` along each axis, and
        whose rows begin `beyond` elements behind it."""
        assert self.tile is not None
        extents = self.layout.extents
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
            positions[axis.name] = first[axis.name] * axis.unit + place[axis.name]
            if axis is self.axes[-1]:
                positions[axis.name] = positions[axis.name] + beyond
            if axis.extent % (self.grid.tile[axis.name] * axis.unit):
                valid.append(positions[axis.name] < axis.extent)
        axes = self.nest.at(positions)
        valid.append(substitute_bool(self.nest.written, axes))
        index = (*self._whose(), *self.layout.index(self.layout.row(place), last))
        value = Read(self.tile.name, index, self.tile.dtype)
        lane = Lane(LANE, wide) if wide > 1 else None
        store = Assign(self.tensor, place_index(self.output.index, axes), value, lane, all_of(*valid))
        count = Const(pieces * (extents[0] if len(extents) > 1 else 1))
        return For(piece.name, start, count, (store,), "serial", step, f"rows of {self.tensor}")

    def _box(self, work: BlockWork, local: dict[str, Int]) -> AsyncCopies:
        """A worker has TMA store its tile, a box for each span of its rows."""
        assert self.tile is not None
        none: dict[str, Int] = {f"{identifier(a.name)}r": Const(0) for a in self.grid.pair}
        first = {a.name: self.grid.first(a, work) + substitute_int(local[a.name], none) for a in self.grid.pair}
        spans, rows, chunks, chunk = self.layout.shape
        turn: Int = Var(SPAN) * (chunks * chunk) if self.turns > 1 else Const(0)
        whole = self._rows(work, first, CHUNK_BYTES // self.tile.dtype.bytes, Const(0), 1, turn)
        offset, last = output_offset(self.nest, self.output), self.axes[-1]
        at = self.grid.outside_places(work)
        span: Int = Var(SPAN) if spans > 1 else Const(0)
        extents, strides = [last.extent], []
        coordinates: list[Int] = [first[last.name] * last.unit + turn + span * (chunks * chunk)]
        box = [chunks * chunk]
        for axis in (*reversed(self.axes[:-1]), *(a for a in self.grid.outside if a.extent > 1)):
            steps = along(offset, axis)
            extents.append(axis.extent)
            strides.append(int(steps[1] - steps[0]) if len(steps) > 1 else chunk)
            inside = axis in self.axes
            coordinates.append((first[axis.name] if inside else at[axis.name].unit) * axis.unit)
            box.append(rows if inside else 1)
        if len(extents) == 1:
            extents, strides, box, coordinates = [*extents, 1], [chunk], [*box, 1], [*coordinates, Const(0)]
        name = f"{self.tile.name}_map"
        seen = TensorMap(name, self.tensor, tuple(extents), tuple(strides), tuple(box), self.layout.swizzle)
        index = (*self._whose(), span, Const(0), Const(0), Const(0))
        boxes: tuple[Stmt, ...] = (TileCopy(seen, tuple(coordinates), self.tile.name, index, store=True),)
        if spans > 1:
            boxes = (For(SPAN, Const(0), Const(spans), boxes, "unrolled", note=f"spans of {self.tensor}"),)
        return AsyncCopies((whole,), "", Const(0), boxes)

    # -- of shares that a cluster's blocks add up --------------------------------------------------------------------

    def gather(
        self, micro: WorkerTile, at: dict[str, Position], work: BlockWork, local: dict[str, Int]
    ) -> tuple[tuple[Stmt, ...], ...]:
        """Workers of one number in all blocks of a cluster have shares of one tile. One of them adds up what the others
        leave in their shared memory, and finishes the tile; tiles are shared out among blocks."""
        grid, acc = self.grid, self.nest.intrinsic.accumulator
        worker, workers = worker_of(grid, self.nest)
        shape = (grid.cluster, workers, *grid.register.values(), acc.shape[0], share_columns(self.nest))
        shares = self.ctx.declare(f"{self.tensor}_shares", acc.dtype, shape, "shared")
        other = self.ctx.declare("share", acc.dtype, (grid.cluster, workers, acc.elements), "register")
        mine, lane = RANK.eq(worker % grid.cluster), self._lane(micro)
        element = micro.element(acc.elements)
        inside = tuple(self.nest.lane_coordinates(acc.name, element).values())

        def place(block: Int) -> tuple[Int, ...]:
            return (block, worker, *micro.register_index(micro.tiled), *inside)

        left = micro.over(micro.tiled, grid.register, (Assign(shares.name, place(RANK), micro.acc_read(), lane),))
        peer = (worker % grid.cluster + Var("peer")) % grid.cluster
        held = (RANK, worker, element)
        load = Assign(other.name, held, Read(shares.name, place(peer), acc.dtype), lane)
        total = Arith("+", micro.acc_read(), Read(other.name, held, acc.dtype), acc.dtype)
        added = Assign(micro.acc, (*micro.acc_index(), element), total, lane)
        summed = micro.over(micro.tiled, grid.register, (load, added))
        note = "shares of the other blocks"
        peers = For("peer", Const(1), Const(grid.cluster), summed, "unrolled", note=note)
        finished = tuple(stmt for phase in self.leave(micro, at, work, local) for stmt in phase)
        return (If(~mine, left), WorkerBarrier()), (If(mine, (peers, *finished)),)

    # -- of a share ---------------------------------------------------------------------------------------------------

    def shares(self) -> Buffer:
        """Memory for the shares of all tiles: by share, tile, block of the cluster, worker, then as in registers."""
        grid, acc = self.grid, self.nest.intrinsic.accumulator
        _, workers = worker_of(grid, self.nest)
        shape = (grid.most_shares, grid.tiles, grid.cluster, workers, *grid.register.values(), acc.elements)
        return self.ctx.declare(f"{self.nest.stage.assign.tensor}_shares", acc.dtype, shape, "workspace")

    def leave_share(self, micro: WorkerTile, work: BlockWork, shares: Buffer) -> tuple[Stmt, ...]:
        """A worker's sums of its share of the reduction, to memory."""
        assert work.tile is not None
        store = Assign(shares.name, self._share(micro, work.share, work.tile), micro.acc_read(), self._lane(micro))
        return micro.over(micro.tiled, self.grid.register, (store,))

    def add_shares(self, micro: WorkerTile, tile: Int, shares: Buffer) -> tuple[Stmt, ...]:
        """All shares of a tile, added to a worker's accumulators: each is loaded whole, and not number by number, where
        a thread has room for it beside its sums."""
        read = Read(shares.name, self._share(micro, Var("from"), tile), shares.dtype)
        lanes, counts = micro.accumulator.elements, self.grid.register
        threads = worker_lanes(self.nest, self.ctx)
        each = self.ctx.registers // (threads * worker_of(self.grid, self.nest)[1])  # of a core that holds one block
        most = min(MOST_WHOLE, (each - OTHER_REGISTERS) // 2)
        load: tuple[Stmt, ...] = ()
        if lanes * prod(counts.values()) * shares.dtype.bits <= 32 * most * threads:
            shape, at = (*counts.values(), lanes), (*micro.register_index(micro.tiled), micro.element(lanes))
            held = self.ctx.declare(f"{self.nest.stage.assign.tensor}_share", shares.dtype, shape, "register")
            load = micro.over(micro.tiled, counts, (Assign(held.name, at, read, self._lane(micro)),))
            read = Read(held.name, at, held.dtype)
        add = (*load, *micro.add(read, counts))
        return (For("from", Const(0), self.grid.shares(tile), add, note="shares of the reduction"),)

    def _share(self, micro: WorkerTile, share: Int, tile: Int) -> tuple[Int, ...]:
        worker, _ = worker_of(self.grid, self.nest)
        rank: Int = RANK if self.grid.cluster > 1 else Const(0)
        registers = micro.register_index(micro.tiled)
        return (share, tile, rank, worker, *registers, micro.element(micro.accumulator.elements))

    @staticmethod
    def _lane(micro: WorkerTile) -> Lane | None:
        return micro.lane(micro.accumulator.elements)


def tile_swizzle(row: int, dtype: DType) -> int:
    """Bytes of the widest spans that rows of so many elements consist of."""
    return max(s for s in SWIZZLES if s == 0 or row * dtype.bits % (s * 8) == 0)


def worker_of(grid: TileGrid, nest: Nest) -> tuple[Int, int]:
    """The worker's number in its block, and how many there are."""
    count = 1
    for n in grid.along.values():
        count *= n
    return Var(worker_kind(nest)), count


def worker_lanes(nest: Nest, ctx: Context) -> int:
    """Threads that issue the nest's instruction together."""
    return ctx.lanes * SCOPE_WARPS.get(nest.intrinsic.scope, 0) or 1


def worker_kind(nest: Nest) -> str:
    """The kind of the loop over workers."""
    return nest.intrinsic.scope if nest.intrinsic.scope in ("warp", "warpgroup") else "thread"
