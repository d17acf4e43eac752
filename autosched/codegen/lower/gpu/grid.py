"""Blocks of a GPU's grid: which tile and which part of the reduction each works on, as loops and formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import For, If, Stmt
from autosched.logic import Const, Int, Var, evaluate, maximum, minimum, where
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps.gpu.block_tile import RASTER, workers_name
from autosched.tiling.steps.gpu.grid_order import CLUSTER_SHAPE, GROUP, PERSISTENT, cluster_shape, clusters_at_once
from autosched.tiling.steps.gpu.split_k import CLUSTER, GATHER, SPLIT, STREAM

BLOCKS = ("block.x", "block.y")
BLOCK, ITEM, RANK, TURN = Var("block"), Var("tile"), Var("cluster"), Var("turn")


@dataclass(frozen=True)
class BlockWork:
    """What a block is doing: `tile` is the number of its (cluster's) tile, None where block loops number the axes
    themselves; `count` slices of the reduction from `first` on; `passed`: slices that the block has passed before;
    `share`: which of the tile's shares this is."""

    tile: Int | None
    first: Int
    count: Int
    passed: Int
    share: Int


@dataclass(frozen=True)
class Receivers:
    """So many blocks of a cluster share a slice, from block `first` on, each `apart` from the next; this one is the
    `number`-th of them."""

    count: int
    number: Int
    first: Int
    apart: int

    def rank(self, number: Int) -> Int:
        """The rank in the cluster of the block of this number."""
        return self.first + number * self.apart


class TileGrid:
    """The grid of one nest under one row."""

    def __init__(self, nest: Nest, pair: tuple[NestAxis, ...], names: StepNames, ctx: Context, cores: int) -> None:
        self.nest, self.pair, self.names, self.values = nest, pair, names, ctx.values
        self.register = {a.name: ctx.values[names.register(a)] for a in pair}
        self.along = {a.name: ctx.values[workers_name(nest, names, a)] for a in pair}
        self.tile = {a.name: self.register[a.name] * self.along[a.name] for a in pair}
        self.persistent, self.group = bool(PERSISTENT.of(names, ctx.values)), GROUP.of(names, ctx.values)
        self.split, self.swapped = SPLIT.of(names, ctx.values), bool(RASTER.of(names, ctx.values))
        self.shape = cluster_shape(pair, CLUSTER_SHAPE.of(names, ctx.values))
        self.gathered = self.split > 1 and GATHER.of(names, ctx.values) == CLUSTER
        self.cluster = self.split if self.gathered else 1
        self.counts: dict[str, int] = {}  # clusters along each axis
        for a in pair:
            self.cluster *= self.shape[a.name]
            self.counts[a.name] = -(-a.units // (self.tile[a.name] * self.shape[a.name]))
        self.outside = [a for a in nest.spatial if a not in pair]
        self.tiles = 1
        for n in (*self.counts.values(), *(a.units for a in self.outside)):
            self.tiles *= n
        at_once = evaluate(clusters_at_once(cores, Const(self.cluster)), {})
        self.resident = min(self.tiles, int(at_once))
        size = ctx.values[names.block(nest.depth)] if nest.depth else 1
        self.slices = -(-nest.depth.units // size) if nest.depth else 1
        for a in nest.reduction:
            if a is not nest.depth:
                self.slices *= a.units
        self.numbered = self.persistent or self.group > 1 or self.cluster > 1 or self.split != 1

    # -- tiles ----------------------------------------------------------------------------------------------------

    def first(self, axis: NestAxis, work: BlockWork) -> Int:
        """The first intrinsic tile of the block along an axis of the pair."""
        if work.tile is None:
            return Var(f"{identifier(axis.name)}b") * self.tile[axis.name]
        number = self._numbers(work.tile)[axis.name]
        shape = self.shape[axis.name]
        if shape > 1:
            number = number * shape + self._rank(axis)
        return number * self.tile[axis.name]

    def _rank(self, axis: NestAxis) -> Int:
        """A block's number in its cluster along one axis: the last axis is the fastest."""
        below = prod(self.shape[a.name] for a in self.pair[self.pair.index(axis) + 1 :])
        number: Int = RANK // below if below > 1 else RANK
        return number % self.shape[axis.name] if below * self.shape[axis.name] < self.cluster else number

    def receivers(self, axes: frozenset[str]) -> Receivers:
        """The blocks of a cluster that need the same slice of an operand which varies along these axes."""
        others = [a for a in self.pair if self.shape[a.name] > 1 and a.name not in axes]
        if len(others) == 1:
            other = others[0]
            apart = prod(self.shape[a.name] for a in self.pair[self.pair.index(other) + 1 :])
            number = self._rank(other)
            first = RANK - number * apart if self.shape[other.name] < self.cluster else Const(0)
            return Receivers(self.shape[other.name], number, first, apart)
        return Receivers(self.cluster, RANK, Const(0), 1) if others else Receivers(1, Const(0), RANK, 1)

    def outside_places(self, work: BlockWork) -> dict[str, Position]:
        """Spatial axes outside the pair."""
        number: Int = Var("z") if work.tile is None else work.tile // self._per_outside()
        at: dict[str, Position] = {}
        below = 1
        for axis in reversed(self.outside):
            here = number // below if below > 1 else number
            if axis is not self.outside[0]:
                here = here % axis.units
            partial = axis.extent % axis.unit != 0
            at[axis.name] = Position(None, here if axis.units > 1 else Const(0), partial)
            below *= axis.units
        return at

    def _per_outside(self) -> int:
        total = 1
        for n in self.counts.values():
            total *= n
        return total

    def _numbers(self, tile: Int) -> dict[str, Int]:
        """The cluster's number along each axis of the pair, in raster order."""
        inside = tile % self._per_outside()
        if len(self.pair) < 2:
            return {a.name: inside for a in self.pair}
        slow, fast = reversed(self.pair) if self.swapped else self.pair
        across = self.group * self.counts[fast.name]
        within, passed = inside % across, inside // across * self.group
        rows: Int = Const(self.group)
        if self.counts[slow.name] % self.group:  # the last group has what is left
            rows = minimum(self.counts[slow.name] - passed, self.group)
        return {slow.name: passed + within % rows, fast.name: within // rows}

    # -- loops ----------------------------------------------------------------------------------------------------

    def launch(self, role: Callable[[BlockWork], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        """What one role of a block does, over all its work."""
        if not self.numbered:
            return role(BlockWork(None, Const(0), Const(self.slices), Const(0), Const(0)))
        if self.split == STREAM:
            return self._stream(role)
        share = -(-self.slices // self.split)
        if self.gathered:  # a cluster is a tile, and its blocks are the shares
            return role(BlockWork(BLOCK, RANK * share, Const(share), Const(0), RANK))
        work = self.tiles * self.split
        item: Int = BLOCK + TURN * self.blocks if self.persistent else BLOCK
        part = item % self.split if self.split > 1 else Const(0)
        first: Int = part * share
        count = minimum(self.slices - first, share) if self.slices % self.split else Const(share)
        turn: Int = TURN if self.persistent else Const(0)
        tile = item // self.split if self.split > 1 else item
        body = role(BlockWork(tile, first, count, turn * share, part))
        if not self.persistent:
            return body
        if work % self.blocks:
            body = (If(item < work, body),)
        turns = Const(-(-work // self.blocks))
        return (For(str(TURN), Const(0), turns, body, "serial", note="work of a persistent block"),)

    @property
    def passed(self) -> Int | None:
        """Slices that a block passes in all its work; None where tiles are shared out."""
        if self.split != 1:
            return None
        if not self.persistent:
            return Const(self.slices)
        turns, more = divmod(self.tiles, self.blocks)
        least = turns * self.slices
        return where(more > BLOCK, least + self.slices, least) if more else Const(least)

    @property
    def blocks(self) -> int:
        """Clusters of the launch."""
        work = self.tiles * max(1, self.split if not self.gathered else 1)
        return min(work, self.resident) if self.persistent or self.split == STREAM else work

    @property
    def stream_share(self) -> int:
        return -(-self.tiles * self.slices // self.resident)

    def _stream(self, role: Callable[[BlockWork], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        share, slices = self.stream_share, self.slices
        start = ITEM * slices - BLOCK * share  # of the tile, counted from the block's first slice
        first, last = maximum(0 - start, 0), minimum(share - start, slices)
        body = role(BlockWork(ITEM, first, last - first, maximum(start, 0), BLOCK - ITEM * slices // share))
        lower = BLOCK * share // slices
        upper = minimum((BLOCK * share + (share + slices - 1)) // slices, self.tiles)
        return (For("tile", lower, upper, body, "serial", 1, "tiles that the block has slices of"),)

    def shares(self, tile: Int) -> Int:
        """How many shares a tile has."""
        if self.split != STREAM:
            return Const(self.split)
        share, slices = self.stream_share, self.slices
        return (tile * slices + (slices - 1)) // share - tile * slices // share + 1

    @property
    def most_shares(self) -> int:
        return self.split if self.split != STREAM else -(-self.slices // self.stream_share) + 1

    def loops(self, body: tuple[Stmt, ...], blocks: int | None = None) -> tuple[Stmt, ...]:
        """The grid around a block."""
        if self.numbered:
            note = f"clusters of {self.cluster}" if self.cluster > 1 else "blocks"
            return (For("block", Const(0), Const(blocks or self.blocks), body, "block.x", 1, note),)
        order = list(self.pair)
        if not self.swapped:
            order.reverse()
        for axis, kind in zip(order, BLOCKS, strict=False):
            count = self.counts[axis.name]
            body = (
                For(f"{identifier(axis.name)}b", Const(0), Const(count), body, kind, note=f"blocks of {axis.name}"),
            )
        total = 1
        for a in self.outside:
            total *= a.units
        if total == 1:
            return bind(body, {"z": Const(0)})
        return (For("z", Const(0), Const(total), body, "block.z", note=" ".join(a.name for a in self.outside)),)
