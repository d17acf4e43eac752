"""Seconds of a kernel on a GPU: its loop tree played event by event on one core, with its share of what all share.

A core (an SM) has four quarters, each with a scheduler and a tensor pipe; a shared-memory port and a port to L2; and
its share of the bandwidth of L2 and DRAM. The actors are the warps of all blocks that the core holds. Each runs the
loops of its phase: loads of global memory (the ports' ticks, then the latency), then arithmetic (the pipe's ticks, no
less than the chain of dependent instructions), stores that nobody waits for, and barriers between phases. Copies that a
kernel starts ahead (cp.async, TMA) are one more actor for each block, which is as many slices ahead as there are
stages; every worker waits for a slice to land, and the slice's slot is free again once all have used it. Contention,
waiting and the overlap of one warp's loads with another's arithmetic come out of the events.

Cores that hold equally many blocks are copies of one another, so one is played: the one with the most blocks. Blocks
that only some cores have left (the tail) get the bandwidth that the others leave. Equations of ports, occupancy and
waves follow the CUDA programming guide and DeepGEMM's and Origami's published models (reference in docs/simulator.md);
nothing is shared with the analytic clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from autosched.codegen.kernel import WORKERS, Kernel
from autosched.device.simulator.engine import (
    MOST_EVENTS,
    TICKS,
    Code,
    Give,
    Meet,
    Outcome,
    Recorder,
    Repeat,
    Take,
    TooManyEventsError,
    Use,
    simulate,
)
from autosched.device.simulator.gpu_costs import ALU_LATENCY, PORT, QUARTERS, Cost, Costs, dram_bytes, rate, speed
from autosched.device.simulator.gpu_launch import Launch, RefusedError, launch
from autosched.device.simulator.script import Loop, Node, Straight, script
from autosched.device.simulator.walk import ASYNC, Facts
from autosched.machine.target import Target

L1_CYCLES, SYNC_CYCLES = 33.0, 22.0  # a load that hits L1; a barrier once all have arrived (arXiv 2402.13499)
DRAM_REACHED = 0.88  # of the datasheet's bandwidth (4.3 of 4.8 TB/s on an H200)
SPILL = 0.01  # of a block's time for each register of a thread that does not fit
IN_FLIGHT = 8.0  # loads that one warp has on their way at once
LAUNCH_SECONDS = 2.2e-6  # of an empty kernel
MOST_PLAYED = 1_500  # events, before later rounds of blocks are taken to last as long as the second
NEXT_BLOCK_CYCLES = 200.0  # until a new block runs where one has ended

PIPE, SLOT, SHARED, L2, DRAM = 0, QUARTERS, 2 * QUARTERS, 2 * QUARTERS + 1, 2 * QUARTERS + 2
SERVERS = (
    *(f"tensor pipe {q}" for q in range(QUARTERS)),
    *(f"scheduler {q}" for q in range(QUARTERS)),
    "shared memory",
    "L2 port",
    "DRAM",
)

__all__ = ["SERVERS", "GpuRun", "RefusedError", "gpu_seconds", "play"]


@dataclass(frozen=True)
class GpuRun:
    """One grid, played: the core with the most blocks. `actors` names the warps."""

    grid: Launch
    outcome: Outcome
    actors: tuple[str, ...]
    dram_read: float
    dram_written: float
    past_l1: float
    shared: float


def gpu_seconds(kernel: Kernel, parts: list[Facts], target: Target) -> dict[str, float]:
    """Seconds by cause (how long a unit was busy), and `total`; RefusedError where a limit of the target is broken."""
    totals: dict[str, float] = defaultdict(float)
    tick = 1.0 / TICKS / target.clock_hz
    for found in parts:
        run = play(kernel, found, target)
        busy = run.outcome.busy
        totals["tensor pipe" if any(i.intrinsic.scope != "thread" for i in found.issues) else "pipe"] += (
            max(busy[PIPE : PIPE + QUARTERS]) * tick
        )
        totals["schedulers"] += max(busy[SLOT : SLOT + QUARTERS]) * tick
        for name, server in (("shared", SHARED), ("l2", L2), ("dram", DRAM)):
            totals[name] += busy[server] * tick
        totals["launch"] += LAUNCH_SECONDS
        totals["total"] += run.outcome.end * tick + LAUNCH_SECONDS
    return dict(totals)


def play(kernel: Kernel, found: Facts, target: Target, record: Recorder | None = None) -> GpuRun:
    """The busiest core's events under one grid."""
    grid = launch(kernel, found, target)
    costs = Costs(kernel, found, grid, target)
    read, written = dram_bytes(found, costs.prints, grid, target)
    past = sum(b for n, b in costs.passed.items() if not found.touches[n].write)
    count = max(1, round(grid.count))
    least, extra = divmod(count, target.cores)
    warps = max(1, ceil(grid.threads / target.limits["warp_threads"]))
    actors_of_block = max(1, round(min(grid.workers, warps)))
    tree = script(found)

    ahead = ahead_of(tree)

    def programs(active: int) -> list[tuple[Code, ...]]:
        """A block's code for each quarter, with `active` cores that share L2 and DRAM; then its copies' code."""
        shares = _Shares(
            min(PORT, speed(target, "L2") / active),
            speed(target, "DRAM") * DRAM_REACHED / active,
            read / past if past else 0.0,
            written / max(1.0, sum(b for n, b in costs.passed.items() if found.touches[n].write)),
        )
        made = [_Emit(costs, grid, target, shares, q, actors_of_block, ahead) for q in range(QUARTERS)]
        return [*(one.block(tree) for one in made), made[0].copies()]

    together = programs(min(count, target.cores))
    tail = programs(extra) if extra and least >= grid.at_once else ()
    each = least if tail else least + (extra > 0)
    layout = _Layout(together, tail, actors_of_block, grid.at_once, ahead.stages if ahead else 0)
    outcome = layout.played(each, record)
    actors = layout.names(min(grid.at_once, each + bool(tail)))
    shared = sum(t.runs * t.bytes * (t.lane.width if t.lane else 1) for t in found.touches if t.scope == "shared")
    return GpuRun(grid, outcome, actors, read, written, past, shared)


@dataclass(frozen=True)
class _Layout:
    """One core's blocks: code of a block in each quarter and of its copies, `tail` that of the block which only some
    cores have left; the core holds `at_once` of them, and each has `stages` slots for slices (0: nothing is ahead)."""

    together: Sequence[tuple[Code, ...]]
    tail: Sequence[tuple[Code, ...]]
    workers: int
    at_once: int
    stages: int

    def played(self, blocks: int, record: Recorder | None) -> Outcome:
        """All of a core's blocks; of more than two rounds whose steady states do not repeat soon the first two, every
        later round being as long as the second (`record` then sees the first MOST_PLAYED events)."""
        rounds = ceil(blocks / self.at_once)
        most = MOST_PLAYED if rounds > 2 else MOST_EVENTS
        try:
            return simulate(self.actors(blocks), len(SERVERS), self.tokens(), record, most)
        except TooManyEventsError:
            if rounds <= 2:
                raise
        one, two = (simulate(self.actors(n * self.at_once), len(SERVERS), self.tokens()) for n in (1, 2))
        busy = tuple(a + (rounds - 1) * (b - a) for a, b in zip(one.busy, two.busy, strict=True))
        end = one.end + (rounds - 1) * (two.end - one.end)
        return Outcome(end, two.ends, busy, one.events + two.events, end - two.end)

    def tokens(self) -> list[int]:
        """For each block: slices that have landed, and slots that are free, once for each worker."""
        return [0, self.stages * self.workers] * self.at_once

    def actors(self, blocks: int) -> list[tuple[Code, ...]]:
        """The programs of the warps of all slots."""
        slots = min(self.at_once, blocks + bool(self.tail))
        found: list[tuple[Code, ...]] = []
        for slot in range(slots):
            mine = blocks // slots + (slot < blocks % slots)
            last = self.tail and slot == blocks % slots  # the slot that is free first takes the block of the tail
            gap = Meet(-1 - slot, self.workers + bool(self.stages), round(NEXT_BLOCK_CYCLES * TICKS))
            made = []
            for q in range(QUARTERS + 1):
                code = (Repeat(mine, (*_in_slot(self.together[q], slot), gap)),)
                made.append((*code, *_in_slot(self.tail[q], slot), gap) if last else code)
            found += [made[(slot * self.workers + worker) % QUARTERS] for worker in range(self.workers)]
            found += [made[QUARTERS]] if self.stages else []
        return found

    def names(self, slots: int) -> tuple[str, ...]:
        who = [*(f"worker {n}" for n in range(self.workers)), *(["copies"] if self.stages else [])]
        return tuple(f"block slot {slot}, {name}" for slot in range(slots) for name in who)


def _in_slot(code: tuple[Code, ...], slot: int) -> tuple[Code, ...]:
    """Barriers and semaphores of a block are its slot's."""
    made: list[Code] = []
    for c in code:
        match c:
            case Repeat(trips, body):
                made.append(Repeat(trips, _in_slot(body, slot)))
            case Meet(_, count, latency):
                made.append(Meet(slot, count, latency))
            case Take(which):
                made.append(Take(2 * slot + which))
            case Give(which):
                made.append(Give(2 * slot + which))
            case Use():
                made.append(replace(c, gives=tuple(2 * slot + which for which in c.gives)) if c.gives else c)
    return tuple(made)


@dataclass(frozen=True)
class Ahead:
    """Copies into shared memory that run ahead: the nodes that start them, how many may be under way, and the loop over
    slices whose trips wait for them (`slices` of them in a block)."""

    nodes: tuple[Loop, ...]
    stages: int
    loop: Loop
    slices: int


def ahead_of(tree: list[Node]) -> Ahead | None:
    """What runs ahead in a grid; None where nothing does, or no loop that uses it is found."""
    nodes = [n for n in _loops(tree) if n.level.kind == ASYNC and _fills(n)]
    if not nodes:
        return None
    best: tuple[Loop, int] | None = None

    def look(body: list[Node], trips: int) -> None:
        nonlocal best
        for node in body:
            if isinstance(node, Loop) and node.level.kind != ASYNC and node.level.kind not in WORKERS:
                block = node.level.kind.startswith("block.")
                count = trips if block else trips * max(1, round(node.level.trips))
                if not block and _issues(node):
                    best = node, count
                look(node.body, count)

    look(tree, 1)
    return Ahead(tuple(nodes), max(n.level.step for n in nodes), *best) if best else None


def _loops(body: list[Node]) -> Iterator[Loop]:
    for node in body:
        if isinstance(node, Loop):
            yield node
            yield from _loops(node.body)


def _straights(body: list[Node]) -> Iterator[Straight]:
    for node in body:
        if isinstance(node, Loop):
            yield from _straights(node.body)
        else:
            yield node


def _issues(node: Loop) -> bool:
    return any(run.issues for run in _straights(node.body))


def _fills(node: Loop) -> bool:
    return any(run.fills for run in _straights(node.body))


@dataclass(frozen=True)
class _Shares:
    """Bytes a cycle of one core's L2 port and DRAM share, and DRAM bytes for each byte read or written past L1."""

    port: float
    dram: float
    missed: float
    written: float


class _Emit:
    """Code of one worker of a block, in one quarter of the core."""

    def __init__(
        self,
        costs: Costs,
        grid: Launch,
        target: Target,
        shares: _Shares,
        quarter: int,
        workers: int,
        ahead: Ahead | None,
    ) -> None:
        self.costs, self.grid, self.target, self.shares, self.quarter = costs, grid, target, shares, quarter
        self.workers, self.ahead = workers, ahead
        self.times = grid.count * workers
        latency = {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}
        self.near = latency.get("shared", 30.0)
        missed = min(1.0, shares.missed)
        self.far = L1_CYCLES + latency.get("L2", 250.0) * (1 - missed) + latency.get("DRAM", 500.0) * missed
        self.slower = 1.0 + SPILL * grid.spilled

    def block(self, tree: list[Node]) -> tuple[Code, ...]:
        return tuple(self.body(tree, 1.0))

    def copies(self) -> tuple[Code, ...]:
        """The copies of a block that run ahead, slice by slice; nothing where there are none."""
        if self.ahead is None:
            return ()
        cost = Cost()
        for node in self.ahead.nodes:
            for run in _straights([node]):
                cost.add(self.costs.of(run))
        each = 1.0 / (self.grid.count * self.ahead.slices)
        size = cost.read * each
        moves = [(L2, size / self.shares.port), (DRAM, size * self.shares.missed / self.shares.dram)]
        moves.append((SHARED, cost.shared * each / speed(self.target, "shared")))
        landed = (0,) * self.workers
        copy = Use(_ticks(tuple(moves)), _tick(self.far), wait=False, name="load", amount=size, gives=landed)
        return (Repeat(self.ahead.slices, (*(Take(1) for _ in range(self.workers)), copy)),)

    def body(self, nodes: list[Node], trips: float) -> list[Code]:
        """`trips`: the product of the repetitions around, in this worker's code."""
        found: list[Code] = []
        phases = sum(isinstance(n, Loop) and n.level.kind in WORKERS for n in nodes)
        for node in nodes:
            match node:
                case Straight():
                    found += self.straight(self.costs.of(node), trips, 1.0)
                case Loop() if self.ahead is not None and node in self.ahead.nodes:
                    pass
                case Loop(level, body) if level.kind in WORKERS:
                    found += self.body(body, trips)
                    if phases > 1:
                        found.append(Meet(0, self.workers, round(SYNC_CYCLES * TICKS)))
                case Loop(level, body) if level.kind.startswith("block."):
                    found += self.body(body, trips)
                case Loop(level, body):
                    found += self.loop(max(1, round(level.trips)), body, trips)
        return found

    def loop(self, n: int, body: list[Node], trips: float) -> list[Code]:
        """All trips of an innermost loop are one request, but for those of the outermost loop of a worker if they wait
        for global memory and then compute: there one worker's arithmetic hides another's loads."""
        if len(body) == 1 and isinstance(body[0], Straight):
            cost = self.costs.of(body[0])
            if trips > 1 or not (cost.read and cost.computes):
                return self.straight(cost, trips * n, float(n))
        inner = self.body(body, trips * n)
        if self.ahead is not None and body is self.ahead.loop.body:
            inner = [Take(0), *inner, Give(1)]
        return [Repeat(n, tuple(inner))] if inner else []

    def straight(self, cost: Cost, trips: float, folded: float) -> list[Code]:
        """Requests of one execution of `folded` trips, `trips` of which are in this worker's code in all."""
        share = folded / (self.times * trips)
        found: list[Code] = []
        slot = SLOT + self.quarter
        if cost.read:
            size = cost.read * share
            moves = ((L2, size / self.shares.port), (DRAM, size * self.shares.missed / self.shares.dram))
            waits = folded if cost.computes else max(1.0, cost.loads * share / IN_FLIGHT)
            found.append(Use(_ticks(moves), _tick(self.far * waits), name="load", amount=size))
        near = (self.near if cost.shared_read else 0.0) * (folded if cost.issues else 1.0)
        chain = cost.chain * share / self.threads("thread" if self.costs.per_issue == 1 else "warp") + near
        uses = [(slot, cost.slots * share), (SHARED, cost.shared * share / speed(self.target, "shared"))]
        for intrinsic, issues, chained in cost.issues.values():
            each = issues * share
            uses += self.pipes(each / rate(intrinsic, self.target), intrinsic.scope)
            chain += chained * share * intrinsic.timing.get("latency", ALU_LATENCY) / self.threads(intrinsic.scope)
        name = next(iter(cost.issues), "copy" if cost.shared else "arithmetic")
        work = sum(i.operations * n for i, n, _ in cost.issues.values()) * share
        if any(amount for _, amount in uses):
            taken = _ticks(tuple((server, cycles * self.slower) for server, cycles in uses))
            found.append(Use(taken, least=_tick(chain), name=name, amount=work))
        if cost.written:
            size = cost.written * share
            moves = ((L2, size / self.shares.port), (DRAM, size * self.shares.written / self.shares.dram))
            found.append(Use(_ticks(moves), wait=False, name="store", amount=size))
        return found

    def pipes(self, cycles: float, scope: str) -> list[tuple[int, float]]:
        """Of the core's pipes together: a warpgroup keeps all four busy, a warp that of its quarter."""
        if scope in ("warpgroup", "core"):
            return [(PIPE + q, cycles) for q in range(QUARTERS)]
        return [(PIPE + self.quarter, cycles * QUARTERS)]

    def threads(self, scope: str) -> float:
        """Issues of one worker that are in different chains because different threads make them."""
        return self.grid.threads / self.workers if scope == "thread" else 1.0


def _tick(cycles: float) -> int:
    return ceil(cycles * TICKS)


def _ticks(uses: tuple[tuple[int, float], ...]) -> tuple[tuple[int, int], ...]:
    return tuple((server, ceil(cycles * TICKS)) for server, cycles in uses if cycles > 0)
