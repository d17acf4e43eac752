"""`SliceSchedule`: in which stage of shared memory a slice of the reduction lies, when it is there, how it is fetched.

A block's `n`-th slice lies in stage `n % stages`, which was used `n // stages` times before (`turn`). A barrier `full`
counts the boxes that have landed in a stage, `empty` the workers that are done with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.gpu.grid import BlockWork, TileGrid
from autosched.codegen.lower.gpu.results import worker_of
from autosched.codegen.lower.gpu.shared_slices import SharedSlices, vector_bytes
from autosched.codegen.tree.kernel import AsyncCopies, BarrierArrive, BarrierWait, For, If, Stmt
from autosched.logic import TRUE, Const, Int, Var, evaluate
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps.gpu.operands.slice_copies import BULK, COPY, STAGE_COUNT
from autosched.tiling.steps.gpu.promotion import group_slices

SLICE = Var("slice")
Phase = tuple[Stmt, ...]


@dataclass(frozen=True)
class SliceSchedule:
    """The slices of one nest under one row: copied in the way `kind`, `vector` bytes at once, `size` depth units each.
    `full` and `empty` name the barriers ("" where there is none)."""

    nest: Nest
    grid: TileGrid
    slices: dict[str, SharedSlices]
    kind: int
    stages: int
    size: int
    vector: int
    full: str
    empty: str

    @staticmethod
    def of(nest: Nest, grid: TileGrid, slices: dict[str, SharedSlices], ctx: Context, producer: bool) -> SliceSchedule:
        """As the row says; declares the barriers. `producer`: somebody waits for stages to be empty."""
        names = grid.names
        kind, stages = COPY.of(names, ctx.values), STAGE_COUNT.of(names, ctx.values)
        assert nest.depth is not None
        size, bulk = ctx.values[names.block(nest.depth)], kind == BULK
        full = ctx.barrier("full", stages) if bulk else ""
        empty = ctx.barrier("empty", stages) if bulk and producer else ""
        return SliceSchedule(nest, grid, slices, kind, stages, size, vector_bytes(ctx, grid), full, empty)

    @property
    def in_depth(self) -> int:
        """Slices along the depth."""
        assert self.nest.depth is not None
        return -(-self.nest.depth.units // self.size)

    @property
    def group(self) -> int:
        """Slices of a group whose sums are added up; 0 where there are no groups."""
        units = {a.name: a.units for a in self.nest.reduction if a is not self.nest.depth}
        every = self.in_depth * prod(units.values())
        return 0 if self.nest.groups is None else int(evaluate(group_slices(self.nest, Const(every)), {}))

    def wait_full(self, work: BlockWork, number: Int = SLICE) -> BarrierWait:
        """The engine has fetched the slice of that number."""
        turn = self.turn(work, number)
        return BarrierWait(self.full, self.slot(work, number), turn * self.arrivals + self.arrivals, turn)

    def arrive_empty(self, work: BlockWork, number: Int) -> BarrierArrive:
        """A slice's stage may be filled anew: by all blocks of a cluster that fetch parts of it."""
        alone = all(s.receivers.count == 1 for s in self.slices.values())
        return BarrierArrive(self.empty, self.slot(work, number), own=alone)

    def wait_empty(self, work: BlockWork, number: Int) -> BarrierWait:
        """All that used the stage of the slice of that number before are done with it."""
        turn = self.turn(work, number)
        return BarrierWait(self.empty, self.slot(work, number), turn, turn - 1)

    def loop(self, work: BlockWork, body: Phase) -> Phase:
        """`body` for each slice of the work, which are numbered from 0."""
        return (For(str(SLICE), Const(0), work.count, body, "serial", 1, f"slices of {self.nest.stage.name}"),)

    def count(self, work: BlockWork, number: Int) -> Int:
        """How many slices the block has passed before this one: barriers count on through all its work."""
        return number + work.passed if self.kind == BULK else number

    def slot(self, work: BlockWork, number: Int) -> Int:
        return self.count(work, number) % self.stages if self.stages > 1 else Const(0)

    def turn(self, work: BlockWork, number: Int) -> Int:
        """How often the slice's stage was used before."""
        return self.count(work, number) // self.stages

    @property
    def arrivals(self) -> int:
        """Signals of a full stage: each block of a cluster fetches a part."""
        return self.grid.cluster

    def if_in_range(self, work: BlockWork, number: Int, body: Phase) -> Phase:
        there = number < work.count
        return body if there == TRUE else (If(there, body),)

    def reduction(self, work: BlockWork, number: Int) -> dict[str, Int]:
        """Units along each reduction axis where a slice begins."""
        depth, number = self.nest.depth, work.first + number
        assert depth is not None
        found: dict[str, Int] = {}
        others = [a for a in self.nest.reduction if a is not depth]
        inside = number % self.in_depth if any(a.units > 1 for a in others) else number
        found[depth.name] = inside * self.size if self.in_depth > 1 else Const(0)
        outer = number // self.in_depth
        for axis in reversed(others):
            found[axis.name] = outer % axis.units if axis.units > 1 else Const(0)
            outer = outer // axis.units
        return found

    def fills(self, work: BlockWork, number: Int) -> Phase:
        """A worker's share of copying all operands' slices."""
        worker, count = worker_of(self.grid, self.nest)
        slot = self.slot(work, number)
        return tuple(
            s.fill(work, self.reduction(work, number), slot, self.vector, worker, count) for s in self.slices.values()
        )

    def makes(self, work: BlockWork, number: Int) -> Phase:
        """A worker's share of computing slices from what copies have brought for them."""
        worker, count = worker_of(self.grid, self.nest)
        slot, place = self.slot(work, number), self.reduction(work, number)
        made = [s for s in self.slices.values() if s.raw]
        return tuple(s.make(work, place, slot, self.vector, worker, count) for s in made)

    def tma_copies(self, work: BlockWork, number: Int) -> AsyncCopies:
        """TMA fetches all operands' slices, then signals their stage."""
        slot = self.slot(work, number)
        place = self.reduction(work, number)
        body = tuple(s.fill(work, place, slot, self.vector, Const(0), 1) for s in self.slices.values())
        boxes = tuple(box for s in self.slices.values() for box in s.boxes(work, place, slot))
        return AsyncCopies(body, self.full, slot, boxes)
