"""Seconds of a kernel on a CPU, from its loop tree: instructions of each straight run of code, caches, and threads that
queue for shared resources.

The machine is an out-of-order core in round figures, no particular product. It shares no code with the analytic clock,
so that the two can disagree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from autosched.codegen.tree.kernel import For, Kernel, Stmt
from autosched.device.simulator.engine import TICKS, Code, Recorder, Repeat, Seat, Simulated, Use, simulate
from autosched.device.simulator.estimate import Estimate
from autosched.device.simulator.walk.facts import Facts, Level, Touch
from autosched.device.simulator.walk.footprints import TouchFootprints
from autosched.device.simulator.walk.reuse import Reuse
from autosched.machine.target import Target

WIDTH = 5.0  # micro-operations a cycle that a core sustains (between 4 of Skylake and 6 of Golden Cove)
LOADS, STORES = 2.0, 1.0  # memory operations a cycle, where a target does not say
VECTORS = 2.0  # vector arithmetic a cycle
SCALAR_PARTS = 1.5  # micro-operations to put one element into a vector register, or take one out
LIBRARY_CYCLES = 40.0  # of exp, tanh … for one vector
BRANCH = 1.0  # cycles of one trip's own bookkeeping
ENTRY = 12.0  # cycles to enter a loop: its exit is mispredicted as often as not
LATENCY = 4.0  # of arithmetic whose result goes back into itself
OVERLAP = 0.8  # of a memory level's time that runs beside arithmetic
USABLE = 0.8  # of a cache that the kernel's own data gets
DEFAULT_BYTES = {"L2": 48.0, "L3": 20.0, "DRAM": 8.0}  # a cycle, where a target does not say
CHUNKS = 32  # of a thread's work: how finely threads take turns at what they share
WAKE_SECONDS = 2.5e-6  # to hand a parallel loop to waiting threads, and to meet again
CALL_SECONDS = 4e-8  # of an empty kernel


@dataclass
class Run:
    """A straight run of code: everything inside the same loops (unrolled ones aside)."""

    times: float = 0.0
    uops: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    vectors: float = 0.0
    issue: float = 0.0
    chains: dict[tuple[object, ...], float] = field(default_factory=lambda: defaultdict(float))

    def cycles(self, target: Target) -> float:
        """Cycles of all executions together."""
        loads = self.loads / target.rates.get("load", LOADS)
        stores = self.stores / target.rates.get("store", STORES)
        uops = self.uops / target.limits.get("issue_width", WIDTH)
        work = max(uops, loads, stores, self.vectors / VECTORS, self.issue)
        return max(work, max(self.chains.values(), default=0.0))


def cpu_estimate(kernel: Kernel, parts: list[Facts], target: Target) -> Estimate:
    """The statements one after the other; parallel ones wake threads and wait for them."""
    moved = []
    totals: dict[str, float] = defaultdict(float)
    for stmt, found in zip(kernel.main.body, parts, strict=True):
        parallel = is_parallel(stmt)
        shares = threads_of(found) if parallel else 1.0
        run = play_cpu(kernel, found, target, shares)
        moved.append(run.moved)
        for name, seconds in _causes(run, target).items():
            totals[name] += seconds
        totals["wake"] += WAKE_SECONDS if parallel else 0.0
    totals["call"] = CALL_SECONDS
    totals["total"] = totals["on_core"] + totals["wake"] + totals["call"]
    return Estimate(dict(totals), tuple(moved))


def is_parallel(stmt: Stmt) -> bool:
    """Whether threads share a statement."""
    return isinstance(stmt, For) and stmt.kind == "parallel"


def threads_of(found: Facts) -> float:
    """Iterations of the parallel loop, that is threads."""
    return max((p.trips for t in found.touches for p in t.path[:1] if p.kind == "parallel"), default=1.0)


def _causes(run: CpuRun, target: Target) -> dict[str, float]:
    tick = 1.0 / TICKS / target.clock_hz
    busy = dict(zip(run.servers, run.outcome.busy, strict=True))
    shown = {name: busy[name] * tick for name in run.servers if not name.startswith("core ")}
    cores = max(busy[name] for name in run.servers if name.startswith("core "))
    return {"arithmetic": cores * tick, **shown, "on_core": run.outcome.end * tick}


@dataclass(frozen=True)
class CpuRun:
    """The simulation of one top-level statement, each thread on a core of its own."""

    outcome: Simulated
    servers: tuple[str, ...]
    moved: dict[str, float]
    """Bytes moved into each cache level, by the level that they come from."""


def play_cpu(kernel: Kernel, found: Facts, target: Target, threads: float, record: Recorder | None = None) -> CpuRun:
    """The events of one statement: threads work through their shares in chunks; each chunk keeps the thread's core and
    its own caches busy, and queues for the levels that all threads share."""
    cycles = sum(run.cycles(target) for run in straight_runs(found, target).values())
    cycles += sum(BRANCH * p.runs + ENTRY * p.runs / max(1.0, p.trips) for p in _serial(found))
    weights = shares(found, round(threads))
    levels = _levels(kernel, found, target, threads)
    servers = [f"core {n}" for n in range(len(weights))]
    own = [name for name, (_, _, shared) in levels.items() if not shared]
    servers += [f"{name} {n}" for name in own for n in range(len(weights))]
    servers += [name for name, (_, _, shared) in levels.items() if shared]
    at = {name: n for n, name in enumerate(servers)}
    asked = (cycles, *(seconds * target.clock_hz for _, seconds, _ in levels.values()))
    codes = {weight: _work(asked, weight / CHUNKS) for weight in dict.fromkeys(weights)}
    seats = [
        Seat((n, *(at[name] if shared else at[f"{name} {n}"] for name, (_, _, shared) in levels.items())))
        for n in range(len(weights))
    ]
    outcome = simulate([codes[weight] for weight in weights], len(servers), record=record, seats=seats)
    return CpuRun(outcome, tuple(servers), {name: size for name, (size, _, _) in levels.items()})


def _work(asked: Sequence[float], part: float) -> tuple[Code, ...]:
    """A thread's chunks: `asked` are cycles of its core, then of each level, of which a chunk takes a `part`."""
    amounts = [amount * part for amount in asked]
    alone = (1.0 - OVERLAP) * (sum(amounts) - max(amounts))
    uses = tuple((server, ceil(amount * TICKS)) for server, amount in enumerate(amounts) if amount > 0)
    return (Repeat(CHUNKS, (Use(uses, ceil(alone * TICKS), name="chunk", amount=amounts[0]),)),)


def _levels(kernel: Kernel, found: Facts, target: Target, threads: float) -> dict[str, tuple[float, float, bool]]:
    """For each level beyond the first cache: bytes that come from it in all, the seconds that takes, and whether all
    threads share it."""
    caches = [m for m in target.memories if m.name.startswith("L")]
    prints = TouchFootprints(kernel.buffers, caches[0].line_bytes if caches else 64)
    touches = found.touches
    reuse = Reuse(touches, prints)
    levels: dict[str, tuple[float, float, bool]] = {}
    for level in caches:
        share = USABLE / (threads if level.shared_by == "device" else 1.0)
        passed = reuse.moved(level.bytes * share)
        size = sum(b * (2.0 if touches[n].write else 1.0) for n, b in passed.items())
        beyond = next((m for m in target.memories[target.memories.index(level) + 1 :]), level)
        speed = beyond.bandwidth_bytes_per_s or DEFAULT_BYTES.get(beyond.name, 8.0) * target.clock_hz
        levels[beyond.name] = size, size / speed, beyond.shared_by == "device"
    return levels


def _serial(found: Facts) -> list[Level]:
    return [p for p in found.levels.values() if p.kind != "unrolled"]


def straight_runs(found: Facts, target: Target) -> dict[tuple[int, ...], Run]:
    """The straight runs of code, by the numbers of the loops around them."""
    runs: dict[tuple[int, ...], Run] = defaultdict(Run)
    vector = float(target.limits.get("vector_bytes", 16))
    for touch in found.touches:
        run = runs[key_of(touch.path)]
        n, slots = touch.runs, pieces(touch, vector)
        run.uops += n * slots * (1.0 if touch.rows or touch.pattern.kind != "elements" else SCALAR_PARTS)
        if touch.write:
            run.stores += n * slots
        else:
            run.loads += n * slots
    for issue in found.issues:
        run = runs[key_of(issue.path)]
        run.uops += issue.runs
        run.issue += issue.runs / target.issues(issue.intrinsic)
        run.chains[issue.intrinsic.form] += issue.runs / issue.accumulators * issue.intrinsic.chain_cycles(LATENCY)
    for work in found.works:
        run = runs[key_of(work.path)]
        count = work.runs * max(1.0, work.width * 4 / vector)
        run.uops += count * work.operations
        run.vectors += count * (work.operations + work.calls * LIBRARY_CYCLES)
        if work.chained:
            run.chains["own",] += work.runs * LATENCY
    return runs


def key_of(path: tuple[Level, ...]) -> tuple[int, ...]:
    return tuple(p.number for p in path if p.kind != "unrolled")


def pieces(touch: Touch, vector_bytes: float) -> float:
    """Memory operations of one execution: one for each vector where lanes are contiguous, else one for each element; of
    a matrix, so for each row."""
    width = touch.lane.width if touch.lane else 1
    if touch.rows:
        return touch.rows * max(1.0, width * touch.bytes / touch.rows / vector_bytes)
    if touch.pattern.kind in ("uniform", "contiguous", "group"):
        return max(1.0, width * touch.bytes / vector_bytes)
    return float(width)


def shares(found: Facts, threads: int) -> list[float]:
    """Each thread's share of a parallel loop's work, by the loop whose bounds depend on the thread; they sum to 1."""
    from autosched.logic import evaluate, free_vars

    worst = [1.0 / threads] * threads
    for touch in found.touches:
        if not touch.path or touch.path[0].kind != "parallel":
            continue
        thread = touch.path[0].var
        for level in touch.path[1:]:
            if free_vars(level.upper) | free_vars(level.lower) == {thread}:
                span = [
                    int(evaluate(level.upper, {thread: t})) - int(evaluate(level.lower, {thread: t}))
                    for t in range(threads)
                ]
                trips = [max(0, -(-n // level.step)) for n in span]
                total = sum(trips)
                if total and max(trips) / total > max(worst):
                    worst = [n / total for n in trips]
                break
    return worst
