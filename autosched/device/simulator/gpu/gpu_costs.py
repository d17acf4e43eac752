"""What straight runs of code ask of a GPU's units: bytes past each port, issues, instruction slots, latencies.

Figures of the machine come from the target; the few that it does not state are named here with their source.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil

from autosched.codegen.tree.kernel import WORKERS, Kernel
from autosched.device.simulator.gpu.gpu_launch import GridLaunch
from autosched.device.simulator.gpu.warp_accesses import LINE, SECTOR, address_instructions, fetched, wavefronts
from autosched.device.simulator.walk.facts import Facts, Fetch, Level, Touch
from autosched.device.simulator.walk.footprints import TouchFootprints, Way
from autosched.device.simulator.walk.reuse import Reuse
from autosched.device.simulator.walk.script import Straight
from autosched.device.simulator.walk.walk import ASYNC
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic

QUARTERS = 4  # a core issues from four schedulers, each with a quarter of its units (H100 whitepaper)
WARP_MMA = 0.62  # of the tensor peak for mma and wmma on Hopper: measured between 0.6 and 0.65 (arXiv 2402.13499)
GROUP_MMA = 0.96  # for wgmma of 128 columns and more (arXiv 2402.13499)
PORT = 64.0  # bytes a cycle between a core and L2 (DeepGEMM's performance model)
L2_KEEPS = 0.75  # of L2 that holds what was read before
ALU_LATENCY = 4.5  # of plain arithmetic (arXiv 2402.13499)
LIBRARY = 16.0  # instructions of exp, tanh …
ADDRESS = 4.0  # instructions that find where one access of a copy by threads goes
FILL_TURNS = 1.5  # of a core's memory where a line comes from L2 (between 1 and 2 by two convolutions on an H200)
SHARED_LINES = 1.25
"""What L2 delivers beyond its bandwidth, since cores that ask for one line together are answered once (tiles came at
9.5 to 10 TB/s on an H200)."""
ROW_CYCLES, ENGINE_BYTES = 1.2, 74.0
"""Of TMA: cycles of a row of a box, and bytes a cycle beside them (rows of 16 to 128 bytes that blocks with
a producer fetched on an H200)."""


@dataclass
class Cost:
    """Of all executions in the kernel together: bytes read and written past L1, bytes over the shared-memory port,
    slots of a scheduler (cycles of one quarter), loads of global memory (instructions of a warp), for each intrinsic
    its issues and the issues in one chain, and the cycles of chained plain arithmetic. Of TMA: boxes, its
    cycles, bytes fetched; of waits for calls and for barriers in memory: how many."""

    read: float = 0.0
    written: float = 0.0
    shared: float = 0.0
    shared_read: bool = False
    boxes: float = 0.0
    engine: float = 0.0
    fetched: float = 0.0
    settles: float = 0.0
    awaits: float = 0.0
    slots: float = 0.0
    loads: float = 0.0
    issues: dict[str, tuple[Intrinsic, float, float]] = field(default_factory=dict)
    chain: float = 0.0

    def add(self, other: Cost) -> None:
        """The cost of both."""
        self.read, self.written, self.shared = (
            self.read + other.read, self.written + other.written, self.shared + other.shared
        )  # fmt: skip
        self.shared_read |= other.shared_read
        self.boxes, self.engine, self.fetched = (
            self.boxes + other.boxes, self.engine + other.engine, self.fetched + other.fetched
        )  # fmt: skip
        self.settles, self.awaits = self.settles + other.settles, self.awaits + other.awaits
        self.loads += other.loads
        self.slots, self.chain = self.slots + other.slots, self.chain + other.chain
        for name, (intrinsic, runs, chained) in other.issues.items():
            _, a, b = self.issues.get(name, (intrinsic, 0.0, 0.0))
            self.issues[name] = intrinsic, a + runs, b + chained

    @property
    def computes(self) -> bool:
        return bool(self.issues) or self.chain > 0


class Costs:
    """Costs of one grid's straight runs. `passed` are the bytes that each access moves past L1, in all."""

    def __init__(self, kernel: Kernel, found: Facts, grid: GridLaunch, target: Target) -> None:
        self.found, self.grid, self.target = found, grid, target
        self.prints = TouchFootprints(kernel.buffers, SECTOR)
        core = target.memory("shared").bytes if any(m.name == "shared" for m in target.memories) else 2**17
        free = max(8192.0, core / grid.at_once - grid.shared_bytes)
        self.buffers = kernel.buffers
        lanes = target.limits["warp_threads"]
        threads = any(p.kind == "thread" for t in found.touches for p in t.path)
        self.lanes, self.per_issue = lanes, 1 if threads else lanes
        self.threads = max(1.0, grid.threads / grid.workers)
        outside = [n for n, t in enumerate(found.touches) if t.scope != "shared" and not t.engine]
        reuse = Reuse([found.touches[n] for n in outside], self.prints, workers_innermost, len(grid.blocks))
        bytes_of = reuse.moved(free)
        self.passed = {n: min(bytes_of[k], self._most(found.touches[n])) for k, n in enumerate(outside)}
        self.fetched = sum(f.runs * f.rows * f.row_bytes for f in found.fetches if not f.store)
        self.stored = sum(f.runs * f.rows * f.row_bytes for f in found.fetches if f.store)
        self.stored += sum(b for n, b in self.passed.items() if found.touches[n].write)
        self._known: dict[Straight, Cost] = {}

    def _most(self, touch: Touch) -> float:
        """What its accesses move where nothing is found in L1."""
        if touch.lane is not None and touch.lane.width * touch.bytes > 16:
            return touch.runs * lines(touch)
        return touch.runs * fetched(touch, self.buffers[touch.buffer], self.lanes) / self.lanes

    def of(self, run: Straight) -> Cost:
        """The cost of a straight run; it is asked for once a quarter of the core, so it is kept."""
        if run not in self._known:
            self._known[run] = self._of(run)
        return self._known[run]

    def _of(self, run: Straight) -> Cost:
        cost = Cost()
        touches = [self.found.touches[n] for n in run.touches]
        for fetch in run.fetches:
            cost.add(self._fetch(fetch))
        for stop in run.stops:
            cost.settles += stop.runs if stop.calls else 0.0
            cost.awaits += 0.0 if stop.calls else stop.runs
        narrow = not run.issues and all((t.lane.width if t.lane else 1) * t.bytes <= 16 for t in touches)
        spread = self.per_issue if narrow and touches else 1  # such a loop's trips are shared out among the lanes
        for n, touch in zip(run.touches, touches, strict=True):
            if touch.engine:
                cost.shared += touch.runs * lines(touch) if touch.scope == "shared" else 0.0
                continue
            times = touch.runs * accesses(touch, self.per_issue, self.lanes) / spread
            if touch.scope == "shared":
                cost.shared_read |= not touch.write
            elif touch.write:
                cost.written += self.passed[n]
            else:
                cost.read += self.passed[n]
                cost.loads += times
            if spread > 1:
                turns = wavefronts(touch, self.buffers[touch.buffer], self.lanes)
                filled = touch.write and any(level.kind == ASYNC for level in touch.path)
                cost.shared += times * turns * LINE * (FILL_TURNS if filled else 1.0)
                cost.slots += times * (ADDRESS + address_instructions(touch, self.threads))
            else:
                cost.shared += touch.runs * lines(touch)
            cost.slots += times
        for issue in run.issues:
            one = Cost(slots=issue.runs * (1.0 if issue.intrinsic.scope != "thread" else 1.0 / self.lanes))
            one.shared = issue.runs * issue.shared
            one.issues[issue.intrinsic.name] = issue.intrinsic, issue.runs, issue.runs / issue.accumulators
            cost.add(one)
        for work in run.works:
            warps = ceil(work.width / self.per_issue) if self.per_issue > 1 else work.width / self.lanes
            cost.slots += work.runs * (work.operations + LIBRARY * work.calls) * warps / spread
            if work.chained:
                cost.chain += work.runs * work.operations * ALU_LATENCY
        return cost


    def _fetch(self, fetch: Fetch) -> Cost:
        """A box moves row by row, and arrives in as many blocks as it is for; it leaves L2 once."""
        size = fetch.runs * fetch.rows * fetch.row_bytes
        if fetch.store:
            return Cost(boxes=fetch.runs, written=size)
        each = ROW_CYCLES + fetch.row_bytes / ENGINE_BYTES
        cycles = fetch.runs * fetch.rows * fetch.blocks * each
        return Cost(boxes=fetch.runs, engine=cycles, fetched=size)


def accesses(touch: Touch, per_issue: int, lanes: int) -> float:
    """Instructions of a warp for one execution: by a warp (`per_issue` lanes move up to 16 bytes each, or an element
    where they take `single` ones), or as one of its `lanes` threads."""
    width = touch.lane.width if touch.lane else 1
    if per_issue > 1 and touch.single:
        return float(ceil(width / per_issue))
    together = touch.pattern.kind in ("uniform", "contiguous", "group") or touch.scope == "shared"
    each = 16 / touch.bytes if together else 1.0  # elements that one thread moves with one instruction
    if per_issue > 1:
        return float(ceil(width / (per_issue * each)))
    return ceil(width / each) / lanes


def lines(touch: Touch) -> float:
    """Bytes that one execution moves over the core's memory port; scattered lanes of global memory move sectors."""
    width = touch.lane.width if touch.lane else 1
    size = touch.bytes
    offsets = touch.pattern.offsets
    if touch.scope == "shared" or offsets is None:
        return width * size
    neighbours = {"uniform": 1, "contiguous": width, "group": touch.pattern.size}.get(touch.pattern.kind)
    if neighbours is not None:
        sectors = int((neighbours - 1) * size) // SECTOR + 1
    else:
        sectors = len({int(o * size) // SECTOR for o in offsets})
    return min(max(width * size, float(sectors * SECTOR)), 4.0 * width * size)


def rate(intrinsic: Intrinsic, target: Target) -> float:
    """Issues a cycle of one core."""
    if intrinsic.name in target.rates:
        return target.rates[intrinsic.name]
    operand, accumulator = intrinsic.inputs[0].dtype.name, intrinsic.accumulator.dtype.name
    if intrinsic.scope in ("warp", "warpgroup") and (peak := target.rates.get(f"ops.tensor.{operand}")):
        return (WARP_MMA if intrinsic.scope == "warp" else GROUP_MMA) * peak / intrinsic.operations
    plain = target.rates.get(f"ops.{accumulator if intrinsic.portable else operand}")
    return plain / intrinsic.operations if plain else 1.0 / intrinsic.timing.get("interval", 1.0)


def workers_innermost(path: tuple[Level, ...]) -> tuple[Level, ...]:
    """Loops in the order in which they share data: workers run side by side, so they are inside all loops in line."""
    side = tuple(p for p in path if p.kind in WORKERS)
    blocks = tuple(p for p in path if p.kind.startswith("block."))
    return (*blocks, *(p for p in path if p not in side and p not in blocks), *side)


def dram_bytes(
    found: Facts, prints: TouchFootprints, grid: GridLaunch, target: Target, kept: frozenset[str] = frozenset()
) -> tuple[float, float]:
    """Bytes read from DRAM into L2, everything once where it fits L2, else once for each wave of blocks side by side;
    and bytes written. L2 has the buffers `kept`."""
    outside = [t for t in found.touches if t.scope != "shared" and (t.write or t.buffer not in kept)]
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
    ways = {id(t.path): Way(t.path) for t in outside}
    for touch in outside:
        way = ways[id(touch.path)]
        whole = prints.of(touch, way, 0)
        if touch.write:
            written = max(written, whole)
            continue
        once[touch.buffer] = max(once[touch.buffer], whole)
        each[touch.buffer] = max(each[touch.buffer], prints.of(touch, way, 0, ranges))
    capacity = L2_KEEPS * next((m.bytes for m in target.memories if m.name == "L2"), 0)
    read = sum(once.values())
    return (read if read <= capacity else max(read, waves * sum(each.values()))), written


def left_behind(found: Facts, prints: TouchFootprints, target: Target) -> frozenset[str]:
    """The buffers that a grid wrote and the next one finds in L2, where there is room for them. Each half of L2 holds
    what its own cores ask for (A100 and H100 whitepapers), so what cores of both wrote and read takes up twice its
    bytes."""
    written = frozenset(t.buffer for t in found.touches if t.write and t.scope != "shared")
    room = next((m.bytes for m in target.memories if m.name == "L2"), 0) / 2
    return written if sum(prints.most(name) for name in written) <= room else frozenset()


def speed(target: Target, name: str) -> float:
    """Bytes a cycle of a level."""
    speed = next((m.bandwidth_bytes_per_s for m in target.memories if m.name == name), None)
    return speed / target.clock_hz if speed else 128.0
