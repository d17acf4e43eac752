"""How a block passes the slices of its reduction: copies through registers, copies that run on, TMA, and a
producer of its own.

Slices take turns in the stages of shared memory. The block's `n`-th slice lies in stage `n % stages`; while it is used,
the next ones are under way:

    sync        start slice 0                       loop: copy slice n+1 | compute on slice n
    cp.async    start slices 0 … stages-2           loop: wait, barrier, start slice n+stages-1, compute on slice n
    computed    the same for what a slice is        loop: wait, barrier, start slice n+stages-1, make slice n, barrier,
                made of                             compute on it
    TMA         the same, waiting at a barrier of the stage that the engine signals
    producer    loop: await empty, start slice n, which signals full   beside   loop: await full, compute, signal empty

Calls that run on are a group for each slice. Where a producer works beside, a slice's group is waited for when the next
one has begun, and only then is its stage empty: the tensor cores never idle between two slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.lower.common.register_tile import DepthRange
from autosched.codegen.lower.gpu.fragment_pipeline import FragmentPipeline
from autosched.codegen.lower.gpu.grid import RANK, BlockWork, TileGrid
from autosched.codegen.lower.gpu.results import worker_lanes, worker_of
from autosched.codegen.lower.gpu.shared_slices import SharedSlices
from autosched.codegen.lower.gpu.slice_schedule import SLICE, Phase, SliceSchedule
from autosched.codegen.lower.gpu.worker_tile import NOWHERE, WorkerTile
from autosched.codegen.tree.kernel import (
    AsyncCalls,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    BarrierWait,
    For,
    If,
    IntrinsicCall,
    Stmt,
    WaitCalls,
    WaitCopies,
    WarpSpecialize,
)
from autosched.logic import Const, Int, evaluate, minimum
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps.gpu.block_tile import SCOPE_WARPS
from autosched.tiling.steps.gpu.operands.fragment_loads import AHEAD, FRAGMENTS
from autosched.tiling.steps.gpu.operands.slice_copies import ASYNC, BULK, SYNC
from autosched.tiling.steps.gpu.promotion import PROMOTE, kept_factors
from autosched.tiling.steps.gpu.thread_registers import PRODUCER_REGISTERS, hands_over, worker_registers
from autosched.tiling.steps.gpu.warp_roles import PRODUCER, ROLES

Places = Callable[[BlockWork], dict[str, Position]]


class SlicePipeline:
    """The slices of one nest under one row."""

    def __init__(
        self,
        nest: Nest,
        grid: TileGrid,
        slices: dict[str, SharedSlices],
        micro: WorkerTile,
        ctx: Context,
        zero_sums: bool,
    ) -> None:
        """`zero_sums`: whether a block's sums start from zero."""
        self.nest, self.grid, self.slices, self.micro, self.ctx = nest, grid, slices, micro, ctx
        names = grid.names
        self.roles = ROLES.of(names, ctx.values) == PRODUCER
        self.schedule = SliceSchedule.of(nest, grid, slices, ctx, self.roles)
        self.promote = self.schedule.group or PROMOTE.of(names, ctx.values)
        self.sums = ctx.barrier("sums", 1) if grid.gathered else ""
        sums = ctx.buffers[micro.acc]
        self.from_zero = zero_sums and micro.overwrites and not self.promote
        """Whether sums begin with the first slice's calls."""
        self.partial = ctx.declare("partial", sums.dtype, sums.shape, "register").name if self.promote else None
        kept = kept_factors(nest, worker_lanes(nest, ctx))
        self.factors = {v: ctx.declare("factor", v.dtype, sums.shape, "register").name for v in kept}
        ahead = FRAGMENTS.of(names, ctx.values) == AHEAD
        self.ahead = FragmentPipeline(self.schedule, micro, ctx) if ahead else None

    def emit(
        self,
        places: Places,
        local: dict[str, Int],
        start: Callable[[BlockWork], Phase],
        finish: Callable[[BlockWork], tuple[Phase, ...]],
        workers: Callable[[Phase], Phase],
        after: Phase,
        apart: bool,
    ) -> Phase:
        """A block: `start` and `finish` are phases of its workers, which `workers` puts a loop around; `after` comes
        once all its work is done. `apart`: workers finish without waiting for each other."""

        def ended(work: BlockWork, first: Phase = ()) -> Phase:
            head, *rest = finish(work)
            if self.sums:
                wait = BarrierWait(self.sums, Const(0), Const(1), Const(0), everywhere=True)
                told = BarrierArrive(self.sums, Const(0)), wait
                return (*without_barriers(workers((*first, *head))), *told, *(s for p in rest for s in workers(p)))
            loops = tuple(stmt for phase in ((*first, *head), *rest) for stmt in workers(phase))
            return without_barriers(loops) if apart else loops

        def together(work: BlockWork) -> Phase:
            inside = self._together(work, places, local, workers)
            last: Phase = (WaitCopies(0),) if self.schedule.kind == ASYNC else ()
            begun = start(work)
            return (*(workers(begun) if begun else ()), *inside, *ended(work, last))

        def consume(work: BlockWork) -> Phase:
            begun = start(work)
            begun = without_barriers(workers(begun)) if begun else ()
            if self.ahead is not None:
                return (*begun, *self.ahead.beside(work, local, workers, without_barriers), *ended(work))
            calls, sums = self.compute(work, places, local)
            # Loads into registers may still be on their way: an arrival overtakes them, and the next boxes land first.
            read: Phase = () if self.nest.intrinsic.asynchronous else (AsyncProxyFence(),)
            computed = without_barriers(workers((*calls, *read)))
            used: Phase = (self.schedule.arrive_empty(work, SLICE),)
            last: Phase = ()
            if self.behind:
                used = (If(SLICE > 0, (self.schedule.arrive_empty(work, SLICE - 1),)),)
                last = (*without_barriers(workers((WaitCalls(0),))), self.schedule.arrive_empty(work, work.count - 1))
            added = without_barriers(workers(sums)) if sums else ()
            slices = self.schedule.loop(work, (self.schedule.wait_full(work), *computed, *used, *added))
            return (*begun, *slices, *last, *ended(work))

        def produce(work: BlockWork) -> Phase:
            empty = self.schedule.wait_empty(work, SLICE)
            return self.schedule.loop(work, (empty, *self.ranks((self.schedule.tma_copies(work, SLICE),))))

        if not self.roles:
            return (*self.grid.launch(together), *after)
        last = self.last_signals()
        parts = (*self.grid.launch(produce), *last), (*self.grid.launch(consume), *after)
        return (WarpSpecialize(("producer", "consumers"), parts, self.registers(), bool(last)),)

    def last_signals(self) -> Phase:
        """The producer of a cluster's block stays until every stage is empty in all blocks: then none of them signals
        here any more, and what it has fetched for others is there."""
        passed = self.grid.passed
        if self.grid.cluster == 1 or self.sums or passed is None:
            return ()
        work = BlockWork(None, Const(0), Const(self.schedule.stages), passed, Const(0))
        empty = self.schedule.wait_empty(work, SLICE)
        stages, note = Const(self.schedule.stages), "stages that others signal"
        return (For(str(SLICE), Const(0), stages, (empty,), "serial", 1, note),)

    def _together(
        self, work: BlockWork, places: Places, local: dict[str, Int], workers: Callable[[Phase], Phase]
    ) -> Phase:
        if self.ahead is not None:
            return self.ahead.loop(work, local, workers, without_barriers)
        calls, sums = self.compute(work, places, local)
        schedule = self.schedule
        compute, ahead = (*calls, *sums), schedule.stages - 1
        if schedule.stages == 1 and schedule.kind == BULK:
            worker, _ = worker_of(self.grid, self.nest)
            ask = workers((If(worker.eq(0), (schedule.tma_copies(work, SLICE),)),))
            return schedule.loop(work, (*ask, schedule.wait_full(work), *workers(compute)))
        shown: Phase = (AsyncProxyFence(),) if self.micro.direct and schedule.kind != BULK else ()
        if schedule.stages == 1:
            return schedule.loop(work, (*workers((*schedule.fills(work, SLICE), *shown)), *workers(compute)))

        def fetch(number: Int) -> Phase:
            """What fetches a slice, if there is one of that number."""
            if schedule.kind == BULK:
                worker, _ = worker_of(self.grid, self.nest)
                return (If(worker.eq(0), schedule.if_in_range(work, number, (schedule.tma_copies(work, number),))),)
            fills = schedule.if_in_range(work, number, schedule.fills(work, number))
            return (AsyncCopies(fills, "", Const(0)),) if schedule.kind == ASYNC else fills

        first: list[Stmt] = []
        for k in range(ahead):
            first += fetch(Const(k))
        body = (*fetch(SLICE + ahead), *compute)
        before: Phase = ()
        if schedule.kind == SYNC:
            first, body = [*first, *shown], (*body, *shown)
        if schedule.kind == ASYNC and (made := schedule.makes(work, SLICE)):
            filled = (WaitCopies(schedule.stages - 2), *fetch(SLICE + ahead), *made, *shown)
            return (*workers(tuple(first)), *schedule.loop(work, (*workers(filled), *workers(compute))))
        if schedule.kind == ASYNC:
            before = workers((WaitCopies(schedule.stages - 2), *shown))
        elif schedule.kind == BULK:
            before = (schedule.wait_full(work),)
        return (*workers(tuple(first)), *schedule.loop(work, (*before, *workers(body))))

    def registers(self) -> tuple[int, ...]:
        """Registers of a thread of the producer and of the consumers, where a launch cannot give all as many as one may
        have: it gives each thread the same, and the producer returns what it does not need."""
        _, count = worker_of(self.grid, self.nest)
        warps, per_lane = Const(count * SCOPE_WARPS[self.nest.intrinsic.scope]), self.ctx.registers // self.ctx.lanes
        if not evaluate(hands_over(per_lane, warps), {}):
            return ()
        return PRODUCER_REGISTERS, int(evaluate(worker_registers(per_lane, warps), {}))

    def ranks(self, body: Phase) -> Phase:
        """What one thread of each block of a cluster does."""
        if self.grid.cluster == 1:
            return body
        return (For(str(RANK), Const(0), Const(self.grid.cluster), body, "cluster", no_barrier=True),)

    def compute(self, work: BlockWork, places: Places, local: dict[str, Int]) -> tuple[Phase, Phase]:
        """A worker's instructions on the current slice, and what it does with their sums, which needs no slice."""
        depth = self.nest.depth
        assert depth is not None
        units = self.schedule.reduction(work, SLICE)
        base = units[depth.name]
        slot = self.schedule.slot(work, SLICE)
        sources = {name: slices.source(local, base, slot) for name, slices in self.slices.items()}
        at = places(work)
        for axis in self.nest.reduction:
            partial = axis is not depth and axis.extent % axis.unit != 0
            at[axis.name] = Position(None, units[axis.name], partial)
        # Slices hold zeros beyond the depth: where all operands come from them, every slice is computed whole.
        whole = len(self.slices) == len(self.nest.intrinsic.inputs)
        even = whole or depth.units % self.schedule.size == 0
        upper: Int = base + self.schedule.size if even else minimum(base + self.schedule.size, depth.units)
        if self.schedule.size >= depth.units:
            upper = Const(depth.units)
        depth_range = DepthRange(base, upper, True, True, whole)
        if self.partial is None:
            micro = self.micro.on_slices(sources, (SLICE.eq(0), base) if self.from_zero else NOWHERE)
            return self.grouped(micro.depth_loop(at, self.grid.register, depth_range), 1 if self.behind else 0), ()
        first = (SLICE % self.promote).eq(0)
        last = ((SLICE + 1) % self.promote).eq(0) | (SLICE + 1).eq(work.count)
        part = self.micro.on_slices(sources, (first, base) if self.micro.overwrites else NOWHERE, self.partial)
        clear = () if part.overwrites else (If(first, part.cleared(self.grid.register)),)
        summed, groups, counts = part.acc_read(), self.nest.groups, self.grid.register
        beside: Phase = ()
        if groups is None:
            add = self.micro.add(summed, counts)
        else:
            add = self.micro.add_group(groups, summed, self.factors, at, counts)
            loads = self.micro.kept_factors(groups, self.factors, at, counts)
            beside = (If(last, loads),) if self.factors else ()
        calls = self.grouped(part.depth_loop(at, self.grid.register, depth_range), 0, beside)
        return (*clear, *calls), (If(last, add),)

    def grouped(self, calls: Phase, pending: int, beside: Phase = ()) -> Phase:
        """Calls that run on as a group of their own, waited for but for the `pending` last; registers that such a call
        reads may not be filled anew before it has ended. `beside`: what else is done until then."""
        if not self.nest.intrinsic.asynchronous:
            return (*beside, *calls)
        if self.alone:
            return (*beside, *_each_alone(calls))
        return (AsyncCalls(calls), *beside, WaitCalls(pending))

    @property
    def alone(self) -> bool:
        """Whether calls read registers, which are filled between one call and the next."""
        return len(self.micro.direct) < len(self.nest.intrinsic.inputs)

    @property
    def behind(self) -> bool:
        """Whether a slice's calls are waited for one slice later."""
        return self.roles and self.nest.intrinsic.asynchronous and not self.promote and not self.alone


def without_barriers(loops: Phase) -> Phase:
    """Loops over workers without a barrier in front."""

    def without(loop: For) -> For:
        inner = without_barriers(loop.body) if loop.kind == "cluster" else loop.body
        return replace(loop, body=inner, no_barrier=True)

    return tuple(without(s) if isinstance(s, For) else s for s in loops)


def _each_alone(body: Phase) -> Iterator[Stmt]:
    """Every call a group of its own, waited for at once."""
    for stmt in body:
        match stmt:
            case IntrinsicCall():
                yield from (AsyncCalls((stmt,)), WaitCalls(0))
            case For() | If():
                yield replace(stmt, body=tuple(_each_alone(stmt.body)))
            case _:
                yield stmt
