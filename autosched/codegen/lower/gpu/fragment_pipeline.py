"""Slices whose fragments are loaded one depth unit ahead of their calls, over the ends of slices too.

    load unit 0 of slice 0
    for each slice:
        for each unit but the last:   load the next unit | start a part of a later slice's copies | call
        wait for the next slice, barrier
        load unit 0 of the next slice | call on the last unit

Each fragment is held twice, and the halves take turns: slices have an even number of units. The barrier in the middle
also says that everyone has loaded all of the slice, whose stage the next slice's copies then fill. After the last slice
its own first unit is loaded once more, which nobody uses: that costs less than to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.lower.gpu.grid import BlockWork
from autosched.codegen.lower.gpu.results import worker_of
from autosched.codegen.lower.gpu.slice_schedule import SLICE, Phase, SliceSchedule
from autosched.codegen.lower.gpu.worker_tile import WorkerTile
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    For,
    If,
    IntrinsicCall,
    RegisterRef,
    Stmt,
    WaitCopies,
)
from autosched.logic import Const, Int, Var, minimum
from autosched.tiling.steps.gpu.operands.slice_copies import BULK

HALVES = 2
Workers = Callable[[Phase], Phase]


class FragmentPipeline:
    """The slices of one nest whose fragments are loaded ahead. Declares the registers of both halves."""

    def __init__(self, schedule: SliceSchedule, micro: WorkerTile, ctx: Context) -> None:
        self.schedule, self.micro, self.nest = schedule, micro, schedule.nest
        self.lanes = ctx.lanes
        assert self.nest.depth is not None
        self.depth, self.size = self.nest.depth, schedule.size
        counts = schedule.grid.register
        owners = ctx.buffers[micro.acc].shape[: len(micro.owner)]
        self.registers: dict[str, str] = {}
        for o in self.nest.intrinsic.inputs:
            del ctx.buffers[micro.registers[o.name]]  # of one unit
            own = (counts[a.name] for a in micro.own(o.name))
            shape = (*owners, HALVES, *own, o.elements)
            self.registers[o.name] = ctx.declare(f"{o.name}_reg", o.dtype, shape, "register").name

    def loop(self, work: BlockWork, local: dict[str, Int], workers: Workers, without_barriers: Workers) -> Phase:
        """All slices of the work; `workers` puts a loop over workers around a phase, `without_barriers` takes away the
        barrier in front of such loops."""
        schedule, unit, most = self.schedule, Var(f"{identifier(self.depth.name)}u"), self.size - 1
        first = [stmt for k in range(schedule.stages - 1) for stmt in self.whole(work, Const(k))]
        later, following = SLICE + (schedule.stages - 1), minimum(SLICE + 1, work.count - 1)
        engine = schedule.kind == BULK
        asked = self.whole(work, later) if engine else ()
        between = () if engine else self.part(work, later, unit)
        step = (*self.load(local, self.slot(work, SLICE), unit + 1), *between, *self.calls(unit % HALVES))
        steps = bind(step, {str(unit): Const(0)})
        if most > 1:
            steps = (For(str(unit), Const(0), Const(most), step, "unrolled"),)
        landed: Phase = () if engine else (WaitCopies(self.groups * (schedule.stages - 2)),)
        begin = (*workers((*first, *landed)), *self.awaited(work, Const(0)))
        head = workers(self.load(local, self.slot(work, Const(0)), Const(0)))
        last = (*self.load(local, self.slot(work, following), Const(0)), *self.calls(Const(most % HALVES)))
        inner = without_barriers(workers((*asked, *steps, *landed)))
        return (*begin, *head, *schedule.loop(work, (*inner, *self.awaited(work, following), *workers(last))))

    def beside(self, work: BlockWork, local: dict[str, Int], workers: Workers, without_barriers: Workers) -> Phase:
        """The same beside a producer, who is told that a stage is empty once all of its units have been read."""
        schedule, unit, most = self.schedule, Var(f"{identifier(self.depth.name)}u"), self.size - 1

        def begin(number: Int) -> Phase:
            """Wait for a slice, and load its first unit."""
            first = self.load(local, self.slot(work, number), Const(0))
            return (schedule.wait_full(work, number), *without_barriers(workers(first)))

        step = (*self.load(local, self.slot(work, SLICE), unit + 1), *self.calls(unit % HALVES))
        steps = bind(step, {str(unit): Const(0)})
        if most > 1:
            steps = (For(str(unit), Const(0), Const(most), step, "unrolled"),)
        # Loads may still be on their way: an arrival overtakes them, and the products that use them (on an H200).
        read = without_barriers(workers((*steps, AsyncProxyFence())))
        used = BarrierArrive(schedule.empty, self.slot(work, SLICE))
        following = If(work.count > SLICE + 1, begin(SLICE + 1))
        last = without_barriers(workers(self.calls(Const(most % HALVES))))
        return (*begin(Const(0)), *schedule.loop(work, (*read, used, following, *last)))

    # -- copies --------------------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> list[int]:
        """In how many parts each operand's slice is copied: all threads have as much to do in each."""
        schedule, scope = self.schedule, self.nest.intrinsic.scope
        threads = worker_of(schedule.grid, self.nest)[1] * (self.lanes if scope == "warp" else 1)
        bits = {o.name: o.dtype.bits for o in self.nest.intrinsic.inputs}
        wide = {o: max(1, schedule.vector * 8 // n) for o, n in bits.items()}
        pieces = [s.layout.rows * -(-s.layout.extents[-1] // wide[s.operand]) for s in schedule.slices.values()]
        return [max((n for n in range(1, self.size) if p % (n * threads) == 0), default=1) for p in pieces]

    @property
    def groups(self) -> int:
        """Groups of copies of a slice, each with a part of every operand's that has so many."""
        return max(self.parts)

    def whole(self, work: BlockWork, number: Int) -> Phase:
        """A worker starts its share of a whole slice's copies."""
        schedule = self.schedule
        if schedule.kind == BULK:
            worker, _ = worker_of(schedule.grid, self.nest)
            return (If(worker.eq(0), schedule.if_in_range(work, number, (schedule.tma_copies(work, number),))),)
        part = Var("part")
        body = self.part(work, number, part)
        if self.groups == 1:
            return bind(body, {str(part): Const(0)})
        return (For(str(part), Const(0), Const(self.groups), body, "unrolled"),)

    def part(self, work: BlockWork, number: Int, part: Int) -> Phase:
        """A worker starts one part of them, if there is one of that number: a group of its own."""
        fills: list[Stmt] = []
        for fill, count in zip(self.schedule.fills(work, number), self.parts, strict=True):
            assert isinstance(fill, For)
            begin, each = part * (fill.upper // count), fill.upper // count
            note = fill.note if count == 1 else fill.note.replace("a slice", f"one of {count} parts of a slice")
            mine = replace(fill, lower=begin + fill.lower, upper=begin + each, note=note)
            fills.append(mine if count == self.groups else If(part < count, (mine,)))
        group = AsyncCopies(self.schedule.if_in_range(work, number, tuple(fills)), "", Const(0))
        return (group,) if self.groups == self.size - 1 else (If(part < self.groups, (group,)),)

    def awaited(self, work: BlockWork, number: Int) -> Phase:
        return (self.schedule.wait_full(work, number),) if self.schedule.kind == BULK else ()

    def slot(self, work: BlockWork, number: Int) -> Int:
        return self.schedule.slot(work, number)

    # -- fragments -----------------------------------------------------------------------------------------------------

    def load(self, local: dict[str, Int], slot: Int, unit: Int) -> Phase:
        """All fragments of a unit of the slice in `slot`, into the half whose turn it is."""
        micro, loads = self.micro, list[Stmt]()
        for o in self.nest.intrinsic.inputs:
            source = self.schedule.slices[o.name].source(local, Const(0), slot)
            value, valid = source.load({self.depth.name: Position(None, unit)}, micro.element(o.elements))
            index = (*self.place(o.name, unit % HALVES), micro.element(o.elements))
            load = Assign(self.registers[o.name], index, value, micro.lane(o.elements), valid)
            loads += micro.over(micro.own(o.name), self.schedule.grid.register, (load,))
        return tuple(loads)

    def calls(self, half: Int) -> Phase:
        """The calls of one unit."""
        micro = self.micro
        refs = {o: RegisterRef(name, self.place(o, half)) for o, name in self.registers.items()}
        refs[micro.accumulator.name] = RegisterRef(micro.acc, micro.acc_index())
        return micro.over(micro.tiled, self.schedule.grid.register, (IntrinsicCall(micro.intrinsic, refs),))

    def place(self, operand: str, half: Int) -> tuple[Int, ...]:
        return (*self.micro.owner, half, *self.micro.register_index(self.micro.own(operand)))
