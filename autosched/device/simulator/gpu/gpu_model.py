"""Seconds of a kernel on a GPU: its loop tree played event by event on one core, with its share of what all share.

A core (an SM) has four quarters, each with a scheduler and a tensor pipe; a shared-memory port and a port to L2; and
its share of the bandwidth of L2 and DRAM. The actors are the warps of all blocks that the core holds. Each runs the
loops of its phase: loads of global memory (the ports' ticks, then the latency), then arithmetic (the pipe's ticks, no
less than the chain of dependent instructions), stores that nobody waits for, and barriers between phases. Copies that a
kernel starts ahead (cp.async, TMA) are one more actor for each block, which is as many slices ahead as there are
stages; every worker waits for a slice to land, and the slice's slot is free again once all have used it. Boxes of the
TMA take its time row by row, in each block of a cluster that receives them. Contention,
waiting and the overlap of one warp's loads with another's arithmetic come out of the events.

Cores that hold equally many blocks are copies of one another, so one is played: the one with the most blocks. Blocks
that only some cores have left (the tail) get the bandwidth that the others leave. Equations of ports, occupancy and
waves follow the CUDA programming guide and DeepGEMM's and Origami's published models (reference in docs/simulator.md);
nothing is shared with the analytic clock.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil

from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.engine import (
    MOST_EVENTS,
    TICKS,
    Code,
    Meet,
    Recorder,
    Repeat,
    Seat,
    Simulated,
    TooManyEventsError,
    simulate,
)
from autosched.device.simulator.estimate import Estimate
from autosched.device.simulator.gpu.block_code import DRAM, L2, PIPE, SERVERS, SHARED, SLOT, Emit, Shares, ahead_of
from autosched.device.simulator.gpu.gpu_costs import (
    PORT,
    QUARTERS,
    SHARED_LINES,
    Costs,
    dram_bytes,
    left_behind,
    rate,
    speed,
)
from autosched.device.simulator.gpu.gpu_launch import GridLaunch, launch
from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.script import script
from autosched.machine.target import Target

DRAM_REACHED = 0.88  # of the datasheet's bandwidth (4.3 of 4.8 TB/s on an H200)
LAUNCH_SECONDS = 2.2e-6  # of an empty kernel
MOST_PLAYED = 1_500  # events, before later rounds of blocks are taken to last as long as the second
NEXT_BLOCK_CYCLES = 200.0  # until a new block runs where one has ended
GAP = 1  # the barrier between two blocks of a slot; a block's own is 0
IN_QUARTER = tuple(
    (
        *(first + (n + q) % QUARTERS for first in (PIPE, SLOT) for n in range(QUARTERS)),
        *range(SLOT + QUARTERS, len(SERVERS)),
    )
    for q in range(QUARTERS)
)
"""The servers of a worker in each quarter: code names them as the worker of the first quarter sees them."""


@dataclass(frozen=True)
class GpuRun:
    """One grid, played: the core with the most blocks. `actors` names the warps."""

    grid: GridLaunch
    outcome: Simulated
    actors: tuple[str, ...]
    moved: dict[str, float]
    """Bytes that pass each level of memory in all."""
    left: frozenset[str]
    """Buffers that the next grid finds in L2."""


def gpu_estimate(kernel: Kernel, parts: list[Facts], target: Target) -> Estimate:
    """RefusedError where a limit of the target is broken."""
    moved = []
    totals: dict[str, float] = defaultdict(float)
    tick = 1.0 / TICKS / target.clock_hz
    kept: frozenset[str] = frozenset()
    for found in parts:
        run = play(kernel, found, target, kept=kept)
        kept = run.left
        moved.append(run.moved)
        busy = run.outcome.busy
        for name, share in of_pipes(found, target).items():
            totals[name] += share * max(busy[PIPE : PIPE + QUARTERS]) * tick
        totals["schedulers"] += max(busy[SLOT : SLOT + QUARTERS]) * tick
        for name, server in (("shared", SHARED), ("l2", L2), ("dram", DRAM)):
            totals[name] += busy[server] * tick
        totals["launch"] += LAUNCH_SECONDS
        totals["total"] += run.outcome.end * tick + LAUNCH_SECONDS
    return Estimate(dict(totals), tuple(moved))


def play(
    kernel: Kernel,
    found: Facts,
    target: Target,
    record: Recorder | None = None,
    kept: frozenset[str] = frozenset(),
) -> GpuRun:
    """The busiest core's events under one grid, which finds the buffers `kept` in L2."""
    grid = launch(kernel, found, target)
    costs = Costs(kernel, found, grid, target)
    read, written = dram_bytes(found, costs.prints, grid, target, kept)
    past_l1 = sum(b for n, b in costs.passed.items() if not found.touches[n].write) + costs.fetched
    count = max(1, round(grid.count))
    least, extra = divmod(count, target.cores)
    warps = max(1, ceil(grid.threads / target.limits["warp_threads"]))
    actors_of_block = max(1, round(min(grid.workers, warps)))
    tree = script(found)

    ahead = ahead_of(tree)

    def programs(active: int) -> tuple[tuple[Code, ...], tuple[Code, ...]]:
        """The code of a block's worker, with `active` cores that share L2 and DRAM, and that of its copies."""
        shares = Shares(
            min(PORT, speed(target, "L2") * SHARED_LINES / active),
            speed(target, "DRAM") * DRAM_REACHED / active,
            read / past_l1 if past_l1 else 0.0,
            written / max(1.0, costs.stored),
        )
        made = Emit(costs, grid, target, shares, actors_of_block, ahead)
        return made.block(tree), made.copies()

    together = programs(min(count, target.cores))
    tail = programs(extra) if extra and least >= grid.at_once else None
    each = least if tail else least + (extra > 0)
    layout = _Layout(together, tail, actors_of_block, grid.at_once, ahead.stages if ahead else 0)
    outcome = layout.played(each, record)
    actors = layout.names(min(grid.at_once, each + bool(tail)))
    moved = {"shared": _shared(found), "L2": past_l1, "DRAM": read + written}
    return GpuRun(grid, outcome, actors, moved, left_behind(found, costs.prints, target))


def of_pipes(found: Facts, target: Target) -> dict[str, float]:
    """The shares of the pipes' time that instructions of warps and warpgroups take, and those of one thread."""
    taken: dict[str, float] = defaultdict(float)
    for issue in found.issues:
        own = "arithmetic" if issue.intrinsic.scope == "thread" else "tensor pipe"
        taken[own] += issue.runs / rate(issue.intrinsic, target)
    every = sum(taken.values())
    return {name: cycles / every for name, cycles in taken.items()} if every else {"arithmetic": 1.0}


def _shared(found: Facts) -> float:
    accesses = (t.runs * t.bytes * (t.lane.width if t.lane else 1) for t in found.touches if t.scope == "shared")
    return sum(i.runs * i.shared for i in found.issues) + sum(accesses)


@dataclass(frozen=True)
class _Layout:
    """One core's blocks: code of a block's workers and of its copies, `tail` that of the block which only some cores
    have left; the core holds `at_once` of them, and each has `stages` slots for slices (0: nothing is ahead)."""

    together: tuple[tuple[Code, ...], tuple[Code, ...]]
    tail: tuple[tuple[Code, ...], tuple[Code, ...]] | None
    workers: int
    at_once: int
    stages: int

    def played(self, blocks: int, record: Recorder | None) -> Simulated:
        """All of a core's blocks; of more than two rounds whose steady states do not repeat soon the first two, every
        later round being as long as the second (`record` then sees the first MOST_PLAYED events)."""
        rounds = ceil(blocks / self.at_once)
        most = MOST_PLAYED if rounds > 2 else MOST_EVENTS
        try:
            return self.simulated(blocks, record, most)
        except TooManyEventsError:
            if rounds <= 2:
                raise
        one, two = (self.simulated(n * self.at_once) for n in (1, 2))
        busy = tuple(a + (rounds - 1) * (b - a) for a, b in zip(one.busy, two.busy, strict=True))
        end = one.end + (rounds - 1) * (two.end - one.end)
        return Simulated(end, two.ends, busy, one.events + two.events, end - two.end)

    def simulated(self, blocks: int, record: Recorder | None = None, most: int = MOST_EVENTS) -> Simulated:
        """The warps of all slots, and the copies of each. For each slot: slices that have landed, and places that are
        free, once for each worker."""
        slots = min(self.at_once, blocks + bool(self.tail))
        gap = Meet(GAP, self.workers + bool(self.stages), round(NEXT_BLOCK_CYCLES * TICKS))
        codes: dict[tuple[int, bool], list[tuple[Code, ...]]] = {}
        actors: list[tuple[Code, ...]] = []
        seats: list[Seat] = []
        for slot in range(slots):
            mine = blocks // slots + (slot < blocks % slots)
            last = bool(self.tail) and slot == blocks % slots  # the slot that is free first takes the tail's block
            if (mine, last) not in codes:
                codes[mine, last] = [self.code(which, mine, last, gap) for which in (0, 1)]
            worker, copies = codes[mine, last]
            first = slot * self.workers
            actors += [worker] * self.workers
            seats += [Seat(IN_QUARTER[n % QUARTERS], 2 * slot, 2 * slot) for n in range(first, first + self.workers)]
            if self.stages:
                actors.append(copies)
                seats.append(Seat(IN_QUARTER[0], 2 * slot, 2 * slot))
        tokens = [0, self.stages * self.workers] * self.at_once
        return simulate(actors, len(SERVERS), tokens, record, most, seats)

    def code(self, which: int, blocks: int, last: bool, gap: Meet) -> tuple[Code, ...]:
        """Of a worker (0) or of copies (1): so many blocks one after the other, and the tail's."""
        code = (Repeat(blocks, (*self.together[which], gap)),)
        return (*code, *self.tail[which], gap) if last and self.tail else code

    def names(self, slots: int) -> tuple[str, ...]:
        who = [*(f"worker {n}" for n in range(self.workers)), *(["copies"] if self.stages else [])]
        return tuple(f"block slot {slot}, {name}" for slot in range(slots) for name in who)
