"""Seconds of a kernel on a GPU, from its loop tree: what one block takes of its core's units, how long its chain of
latencies is, how many blocks a core holds, how many waves of blocks there are.

Figures of the machine come from the target; the few that it does not state are named here. Nothing is shared with the
analytic clock, so that the two can disagree.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, prod

from autosched.codegen.kernel import Kernel
from autosched.device.simulator.reuse import Footprints, moved
from autosched.device.simulator.walk import Facts, Level, Touch
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic

QUARTERS = 4  # a core issues from four schedulers, each with a quarter of its units (H100 whitepaper)
WARP_MMA = 0.62  # of the tensor peak for mma and wmma on Hopper: measured between 0.6 and 0.65 (arXiv 2402.13499)
OWN_REGISTERS = 30  # a thread's, beside its fragments
GRANULE = 8  # registers are given out in eights (CUDA occupancy calculator)
L1_CYCLES, SYNC_CYCLES = 33.0, 22.0  # a load that hits L1; a barrier once all have arrived
PORT = 64.0  # bytes a cycle between a core and L2
L2_KEEPS = 0.75  # of L2 that holds what was read before
DRAM_REACHED = 0.88  # of the datasheet's bandwidth
SPILL = 0.01  # of a block's time for each register of a thread that does not fit
SECTOR = 32
WARP = 32
IN_FLIGHT = 8.0  # loads that one warp has on their way at once
LAUNCH_SECONDS = 2.2e-6
ALU_LATENCY = 4.5
LIBRARY = 16.0  # instructions of exp, tanh …
OVERLAP = 0.88  # of a unit's work that runs beside the busiest unit's


class RefusedError(Exception):
    """A kernel that the device cannot launch; the message says which limit it breaks."""


@dataclass(frozen=True)
class Launch:
    """One grid. `blocks` are its block loops, slowest first; `workers` how many run side by side in a block; `spilled`
    registers of a thread do not fit."""

    blocks: tuple[Level, ...]
    count: float
    workers: float
    threads: int
    registers: int
    spilled: int
    shared_bytes: float
    at_once: int


def gpu_seconds(kernel: Kernel, parts: list[Facts], target: Target) -> dict[str, float]:
    """Seconds by cause, and `total`; RefusedError where a limit of the target is broken."""
    totals: dict[str, float] = defaultdict(float)
    for found in parts:
        for name, seconds in _grid(kernel, found, target).items():
            totals[name] += seconds
    return dict(totals)


def _grid(kernel: Kernel, found: Facts, target: Target) -> dict[str, float]:
    grid = launch(kernel, found, target)
    cycle = 1.0 / target.clock_hz
    prints = Footprints(kernel.buffers, SECTOR)
    units = _units(kernel, found, grid, target, prints)
    chain = _chain(found, grid, target)
    busiest = max(units.values(), default=0.0)
    busy = busiest + (1.0 - OVERLAP) * (sum(units.values()) - busiest)
    busy *= 1.0 + SPILL * grid.spilled

    def together(blocks: float) -> float:
        return max(blocks * busy, chain + busy) if blocks else 0.0

    wave = target.cores * grid.at_once
    full = int(grid.count // wave)
    rest = ceil((grid.count - full * wave) / target.cores)
    on_core = (full * together(grid.at_once) + together(rest)) * cycle
    dram = _dram_bytes(found, prints, grid, target) / (_speed(target, "DRAM") * DRAM_REACHED) * cycle
    beside = max(on_core, dram) + (1.0 - OVERLAP) * min(on_core, dram)
    total = beside + LAUNCH_SECONDS
    shown = {name: cycles * grid.count / target.cores * cycle for name, cycles in units.items()}
    return shown | {"chain": chain * cycle, "dram": dram, "launch": LAUNCH_SECONDS, "total": total}


def launch(kernel: Kernel, found: Facts, target: Target) -> Launch:
    """The grid of one top-level statement, its block's resources, and how many blocks a core holds."""
    limits = target.limits
    lanes = limits["warp_threads"]
    loops = found.levels
    blocks = tuple(p for p in loops.values() if p.kind.startswith("block."))
    warps = max((p.trips for p in loops.values() if p.kind == "warp"), default=0.0)
    threads = max((p.trips for p in loops.values() if p.kind == "thread"), default=0.0)
    wide = max((t.lane.width for t in found.touches if t.lane is not None), default=1)
    count = int(warps * lanes or threads or (lanes if wide > 1 else 1))
    together = lanes if warps or (not threads and wide > 1) else 1
    workers = warps or threads or 1.0
    held = 0
    for name in sorted(found.buffers):
        buffer = kernel.buffers[name]
        if buffer.scope != "register":
            continue
        elements = buffer.elements
        if name in found.owned:
            elements = ceil(elements / workers)
        held += ceil(elements * buffer.dtype.bits / (32 * together))
    shared = sum(
        b.elements * b.dtype.bits / 8 for n, b in kernel.buffers.items() if b.scope == "shared" and n in found.buffers
    )
    _within(count, limits.get("threads_per_block"), "threads in a block")
    _within(held, limits.get("registers_per_thread"), "registers a thread")
    _within(shared, limits.get("shared_bytes"), "bytes of shared memory in a block")
    each = ceil(count / lanes)
    _within(held * each * lanes, limits.get("registers_per_core"), "registers in a block")
    most = min(limits.get("registers_per_thread", 255), limits.get("registers_per_core", 65536) // (each * lanes))
    registers = min(-(-(held + OWN_REGISTERS) // GRANULE) * GRANULE, most)
    spilled = max(0, held + OWN_REGISTERS - most)
    fits = [limits.get("blocks_per_core", 32), limits.get("warps_per_core", 64) // each]
    fits.append(limits.get("registers_per_core", 65536) // (registers * each * lanes))
    if shared:
        on_core = target.memory("shared").bytes
        fits.append(int(on_core // (shared + limits.get("shared_bytes_reserved_per_block", 0))))
    number = prod((p.trips for p in blocks), start=1.0)
    return Launch(blocks, number, workers, count, registers, spilled, shared, max(1, min(fits)))


def _within(value: float, limit: int | None, what: str) -> None:
    if limit is not None and value > limit:
        raise RefusedError(f"{value:,.0f} {what}; the target allows {limit:,}")


def _units(kernel: Kernel, found: Facts, grid: Launch, target: Target, prints: Footprints) -> dict[str, float]:
    """Cycles that one block keeps each unit of its core busy."""
    lanes = target.limits["warp_threads"]
    units: dict[str, float] = defaultdict(float)
    slots = 0.0
    per_issue = 1 if any(p.kind == "thread" for t in found.touches for p in t.path) else lanes
    for issue in found.issues:
        units[f"issue {issue.intrinsic.name}"] += issue.runs / grid.count / rate(issue.intrinsic, target)
        slots += issue.runs * (1.0 if issue.intrinsic.scope == "warp" else 1.0 / lanes)
    port = 0.0
    for touch in found.touches:
        port += touch.runs * lines(touch)
        slots += touch.runs * accesses(touch, per_issue)
    for work in found.works:
        warps = ceil(work.width / per_issue) if per_issue > 1 else work.width / lanes
        slots += work.runs * (work.operations + LIBRARY * work.calls) * warps
    units["shared"] = port / grid.count / _speed(target, "shared")
    units["slots"] = slots / grid.count / QUARTERS
    core = target.memory("shared").bytes if any(m.name == "shared" for m in target.memories) else 2**17
    free = max(8192.0, core / grid.at_once - grid.shared_bytes)
    outside = [t for t in found.touches if t.scope != "shared"]
    past = sum(moved(outside, prints, free, workers_innermost, len(grid.blocks)).values())
    units["l2"] = past / grid.count / min(PORT, _speed(target, "L2") / target.cores)
    return dict(units)


def accesses(touch: Touch, per_issue: int) -> float:
    """Instructions of a warp for one execution: by a warp (`per_issue` lanes move up to 16 bytes each), or as one of a
    warp's threads."""
    width = touch.lane.width if touch.lane else 1
    together = touch.pattern.kind in ("uniform", "contiguous", "group") or touch.scope == "shared"
    each = 16 / touch.bytes if together else 1.0  # elements that one thread moves with one instruction
    if per_issue > 1:
        return float(ceil(width / (per_issue * each)))
    return ceil(width / each) / WARP


def lines(touch: Touch) -> float:
    """Bytes that one execution moves over the core's memory port; scattered lanes of global memory move sectors."""
    width = touch.lane.width if touch.lane else 1
    size = touch.bytes
    offsets = touch.pattern.offsets
    if touch.scope == "shared" or offsets is None:
        return width * size
    sectors = len({int(o * size) // SECTOR for o in offsets})
    return min(max(width * size, float(sectors * SECTOR)), 4.0 * width * size)


def rate(intrinsic: Intrinsic, target: Target) -> float:
    """Issues a cycle of one core."""
    if intrinsic.name in target.rates:
        return target.rates[intrinsic.name]
    operand, accumulator = intrinsic.inputs[0].dtype.name, intrinsic.accumulator.dtype.name
    if intrinsic.scope == "warp" and (peak := target.rates.get(f"ops.tensor.{operand}")):
        return WARP_MMA * peak / intrinsic.operations
    plain = target.rates.get(f"ops.{accumulator if intrinsic.isa == 'portable' else operand}")
    return plain / intrinsic.operations if plain else 1.0 / intrinsic.timing.get("interval", 1.0)


def _chain(found: Facts, grid: Launch, target: Target) -> float:
    """Cycles of one block alone: its workers side by side, everything that waits for something in line."""
    latency = {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}
    far = 0.8 * latency.get("L2", 250.0) + 0.2 * latency.get("DRAM", 500.0) + L1_CYCLES
    waits: dict[tuple[int, ...], float] = defaultdict(float)
    entered: dict[tuple[int, ...], float] = {}
    for touch in found.touches:
        if touch.write:
            continue
        key, times = _segment(touch.path, touch.runs, grid)
        entered[key] = max(entered.get(key, 0.0), times)
        waits[key] = max(waits[key], latency.get("shared", 30.0) if touch.scope == "shared" else far)
    ordered = {_segment(i.path, i.runs, grid)[0] for i in found.issues}
    ordered |= {_segment(w.path, w.runs, grid)[0] for w in found.works if w.chained}
    trips = {tuple(q.number for q in t.path if q.kind != "unrolled"): _innermost(t.path) for t in found.touches}
    total = 0.0
    for key, times in entered.items():  # trips that do not wait for one another, as those of a copy, overlap
        total += waits[key] * times / (1.0 if key in ordered else min(IN_FLIGHT, max(1.0, trips.get(key, 1.0))))
    for issue in found.issues:
        per_worker = issue.runs / grid.count / grid.workers
        turns = per_worker / issue.accumulators * issue.intrinsic.timing.get("latency", ALU_LATENCY)
        total += max(
            turns,
            per_worker * QUARTERS / rate(issue.intrinsic, target) / (1 if issue.intrinsic.scope == "warp" else 32),
        )
    for work in found.works:
        total += work.runs / grid.count / grid.workers * (work.operations if work.chained else 1) * ALU_LATENCY
    phases = {k: p for k, p in found.levels.items() if p.kind in ("warp", "thread")}
    if len(phases) > 1:
        total += sum(p.runs / max(1.0, p.trips) for p in phases.values()) / grid.count * SYNC_CYCLES
    return total


def _innermost(path: tuple[Level, ...]) -> float:
    """Trips of the innermost loop that runs in line."""
    return next((p.trips for p in reversed(path) if p.kind == "serial"), 1.0)


def _segment(path: tuple[Level, ...], runs: float, grid: Launch) -> tuple[tuple[int, ...], float]:
    """The straight run of code that a statement belongs to, and how often one worker passes through it."""
    unrolled = prod((p.trips for p in path if p.kind == "unrolled"), start=1.0)
    key = tuple(p.number for p in path if p.kind != "unrolled")
    return key, runs / unrolled / grid.count / grid.workers


def workers_innermost(path: tuple[Level, ...]) -> tuple[Level, ...]:
    """Loops in the order in which they share data: workers run side by side, so they are inside all loops in line."""
    side = tuple(p for p in path if p.kind in ("warp", "thread"))
    blocks = tuple(p for p in path if p.kind.startswith("block."))
    return (*blocks, *(p for p in path if p not in side and p not in blocks), *side)


def _dram_bytes(found: Facts, prints: Footprints, grid: Launch, target: Target) -> float:
    """Bytes between L2 and DRAM: everything once where it fits L2, else once for each wave of blocks side by side."""
    outside = [t for t in found.touches if t.scope != "shared"]
    left = min(grid.count, float(target.cores * grid.at_once))
    waves = ceil(grid.count / left)
    ranges = {}
    for level in reversed(grid.blocks):
        n = max(1, min(round(level.trips), ceil(left)))
        ranges[level.var] = (0, n - 1)
        left = max(1.0, left / n)
    once: dict[str, float] = defaultdict(float)
    each: dict[str, float] = defaultdict(float)
    written = 0.0
    for touch in outside:
        whole = prints.of(touch, touch.path, 0)
        if touch.write:
            written = max(written, whole)
            continue
        once[touch.buffer] = max(once[touch.buffer], whole)
        each[touch.buffer] = max(each[touch.buffer], prints.of(touch, touch.path, 0, ranges))
    capacity = L2_KEEPS * next((m.bytes for m in target.memories if m.name == "L2"), 0)
    read = sum(once.values())
    return written + (read if read <= capacity else max(read, waves * sum(each.values())))


def _speed(target: Target, name: str) -> float:
    """Bytes a cycle of a level."""
    speed = next((m.bandwidth_bytes_per_s for m in target.memories if m.name == name), None)
    return speed / target.clock_hz if speed else 128.0
