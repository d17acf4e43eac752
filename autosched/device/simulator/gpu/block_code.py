"""The code of one core's actors: requests of a block's workers, and of its copies that run ahead.

A worker is a warp in a quarter of the core, or a warpgroup in all four.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from autosched.codegen.tree.kernel import WORKERS
from autosched.device.simulator.engine import TICKS, Code, Give, Meet, Repeat, Take, Use
from autosched.device.simulator.gpu.gpu_costs import ALU_LATENCY, QUARTERS, Cost, Costs, rate, speed
from autosched.device.simulator.gpu.gpu_launch import GridLaunch
from autosched.device.simulator.walk.script import Node, ScriptLoop, Straight
from autosched.device.simulator.walk.walk import ASYNC
from autosched.machine.target import Target

L1_CYCLES, SYNC_CYCLES = 33.0, 22.0  # a load that hits L1; a barrier once all have arrived (arXiv 2402.13499)
SPILL = 0.01  # of a block's time for each register of a thread that does not fit
IN_FLIGHT = 8.0  # loads that one warp has on their way at once
ENGINE_CYCLES = 250.0  # of a box beyond a load's latency (Hopper microbenchmarks: 600 to 1100 in all)
BOX_CYCLES = 12.0  # of the thread that asks for a box
DRAIN_CYCLES = 90.0  # from a warpgroup's last product until its threads go on
AWAIT_CYCLES = 25.0  # of a look at a barrier in memory
CLUSTER_CYCLES = 700.0
"""Of a barrier of a cluster's blocks, for each but one: what kernels without a producer lose in a slice on an H200."""

PIPE, SLOT, SHARED, L2, DRAM, ENGINE = 0, QUARTERS, 2 * QUARTERS, 2 * QUARTERS + 1, 2 * QUARTERS + 2, 2 * QUARTERS + 3
SERVERS = (
    *(f"tensor pipe {q}" for q in range(QUARTERS)),
    *(f"scheduler {q}" for q in range(QUARTERS)),
    "shared memory",
    "L2 port",
    "DRAM",
    "copy engine",
)


@dataclass(frozen=True)
class Ahead:
    """Copies into shared memory that run ahead: the nodes that start them, how many may be under way, and the loop over
    slices whose trips wait for them (`slices` of them in a block)."""

    nodes: tuple[ScriptLoop, ...]
    stages: int
    loop: ScriptLoop
    slices: int


def ahead_of(tree: list[Node]) -> Ahead | None:
    """What runs ahead in a grid; None where nothing does, or no loop that uses it is found."""
    nodes = [n for n in _loops(tree) if n.level.kind == ASYNC and _fills(n)]
    if not nodes:
        return None
    best: tuple[ScriptLoop, int] | None = None

    def look(body: list[Node], trips: int) -> None:
        nonlocal best
        for node in body:
            if isinstance(node, ScriptLoop) and node.level.kind != ASYNC and node.level.kind not in WORKERS:
                block = node.level.kind.startswith("block.")
                count = trips if block else trips * max(1, round(node.level.trips))
                if not block and any(run.issues for run in _straights(node.body)):
                    best = node, count
                look(node.body, count)

    look(tree, 1)
    return Ahead(tuple(nodes), max(n.level.step for n in nodes), *best) if best else None


def _loops(body: list[Node]) -> Iterator[ScriptLoop]:
    for node in body:
        if isinstance(node, ScriptLoop):
            yield node
            yield from _loops(node.body)


def _straights(body: list[Node]) -> Iterator[Straight]:
    for node in body:
        if isinstance(node, ScriptLoop):
            yield from _straights(node.body)
        else:
            yield node


def _fills(node: ScriptLoop) -> bool:
    return any(run.fills for run in _straights(node.body))


@dataclass(frozen=True)
class Shares:
    """Bytes a cycle of one core's L2 port and DRAM share, and DRAM bytes for each byte read or written past L1."""

    port: float
    dram: float
    missed: float
    written: float


class Emit:
    """Code of one worker of a block, in the first quarter of the core."""

    def __init__(
        self,
        costs: Costs,
        grid: GridLaunch,
        target: Target,
        shares: Shares,
        workers: int,
        ahead: Ahead | None,
    ) -> None:
        self.costs, self.grid, self.target, self.shares = costs, grid, target, shares
        self.workers, self.ahead = workers, ahead
        self.times = grid.count * workers
        latency = {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}
        self.near = latency.get("shared", 30.0)
        missed = min(1.0, shares.missed)
        self.far = L1_CYCLES + latency.get("L2", 250.0) * (1 - missed) + latency.get("DRAM", 500.0) * missed
        self.slower = 1.0 + SPILL * grid.spilled
        self.warps = max(1.0, grid.threads / target.limits["warp_threads"] / workers)

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
        taken = size + cost.fetched * each
        moves = [(L2, size / self.shares.port), (DRAM, taken * self.shares.missed / self.shares.dram)]
        moves.append((ENGINE, cost.engine * each))
        if cost.engine:  # what threads copy has gone past their core's memory where they asked for it
            moves.append((SHARED, cost.shared * each / speed(self.target, "shared")))
        landed = (0,) * self.workers
        late = tick(self.far + (ENGINE_CYCLES if cost.engine else 0.0))
        copy = Use(_ticks(tuple(moves)), late, wait=False, name="load", amount=taken, gives=landed)
        return (Repeat(self.ahead.slices, (*(Take(1) for _ in range(self.workers)), copy)),)

    def body(self, nodes: list[Node], trips: float) -> list[Code]:
        """`trips`: the product of the repetitions around, in this worker's code."""
        found: list[Code] = []
        for node in nodes:
            match node:
                case Straight():
                    found += self.straight(self.costs.of(node), trips, 1.0)
                case ScriptLoop(level) if self.ahead is not None and node in self.ahead.nodes:
                    if level.number not in self.costs.found.apart:
                        found += self.start(node, trips)
                case ScriptLoop(level, body) if level.kind in WORKERS:
                    if level.barrier:
                        others = level.trips - 1 if level.kind == "cluster" else 0.0
                        wait = SYNC_CYCLES + CLUSTER_CYCLES * others
                        found.append(Meet(0, self.workers, tick(wait)))
                    found += self.body(body, trips)
                case ScriptLoop(level, body) if level.kind.startswith("block."):
                    found += self.body(body, trips)
                case ScriptLoop(level, body):
                    found += self.loop(max(1, round(level.trips)), body, trips)
        return found

    def start(self, node: ScriptLoop, trips: float) -> list[Code]:
        """What a worker does to start copies that run ahead: all instructions of copies by threads, or boxes."""
        cost = Cost()
        for run in _straights([node]):
            cost.add(self.costs.of(run))
        share = 1.0 / (self.times * trips)
        uses = [] if cost.engine else [(SHARED, cost.shared * share / speed(self.target, "shared"))]
        uses += self.spread(SLOT, cost.slots * share)
        return [Use(_ticks(tuple(uses)), tick(cost.boxes * share * BOX_CYCLES), name="start")]

    def spread(self, servers: int, cycles: float) -> list[tuple[int, float]]:
        """Of one worker, on the quarters that its warps are on."""
        if self.warps < QUARTERS:
            return [(servers, cycles)]
        return [(servers + q, cycles / QUARTERS) for q in range(QUARTERS)]

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
        if cost.awaits:
            found.append(Use((), tick(AWAIT_CYCLES)))
        if cost.read:
            size = cost.read * share
            moves = ((L2, size / self.shares.port), (DRAM, size * self.shares.missed / self.shares.dram))
            waits = max(folded if cost.computes else 1.0, cost.loads * share / (IN_FLIGHT * self.warps))
            found.append(Use(_ticks(moves), tick(self.far * waits), name="load", amount=size))
        near = (self.near if cost.shared_read else 0.0) * (folded if cost.issues else 1.0)
        chain = cost.chain * share / self.threads("thread" if self.costs.per_issue == 1 else "warp") + near
        uses = [*self.spread(SLOT, cost.slots * share), (SHARED, cost.shared * share / speed(self.target, "shared"))]
        for intrinsic, issues, chained in cost.issues.values():
            each = issues * share
            uses += self.pipes(each / rate(intrinsic, self.target), intrinsic.scope)
            chain += chained * share * intrinsic.timing.get("latency", ALU_LATENCY) / self.threads(intrinsic.scope)
        name = next(iter(cost.issues), "copy" if cost.shared else "arithmetic")
        work = sum(i.operations * n for i, n, _ in cost.issues.values()) * share
        if any(amount for _, amount in uses):
            taken = _ticks(tuple((server, cycles * self.slower) for server, cycles in uses))
            found.append(Use(taken, least=tick(chain), name=name, amount=work))
        if cost.written:
            size = cost.written * share
            moves = ((L2, size / self.shares.port), (DRAM, size * self.shares.written / self.shares.dram))
            found.append(Use(_ticks(moves), wait=False, name="store", amount=size))
        if cost.settles:
            found.append(Use((), tick(DRAIN_CYCLES)))
        return found

    def pipes(self, cycles: float, scope: str) -> list[tuple[int, float]]:
        """Of the core's pipes together: a warpgroup keeps all four busy, a warp that of its quarter."""
        if scope in ("warpgroup", "core"):
            return [(PIPE + q, cycles) for q in range(QUARTERS)]
        return [(PIPE, cycles * QUARTERS)]

    def threads(self, scope: str) -> float:
        """Issues of one worker that are in different chains because different threads make them."""
        return self.grid.threads / self.workers if scope == "thread" else 1.0


def tick(cycles: float) -> int:
    return ceil(cycles * TICKS)


def _ticks(uses: tuple[tuple[int, float], ...]) -> tuple[tuple[int, int], ...]:
    return tuple((server, ceil(cycles * TICKS)) for server, cycles in uses if cycles > 0)
