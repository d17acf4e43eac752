"""Seconds of a kernel on a CPU, from its loop tree: instructions of each straight run of code, caches, threads.

The machine is an out-of-order core in round figures; it stands for no particular product. Nothing here is shared with
the analytic clock, so that the two can disagree.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from autosched.codegen.kernel import For, Kernel
from autosched.device.simulator.reuse import Footprints, moved
from autosched.device.simulator.walk import Facts, Level, Touch
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
WAKE_SECONDS = 2.5e-6  # to hand a parallel loop to waiting threads, and to meet again
CALL_SECONDS = 4e-8  # of an empty kernel


@dataclass
class Run:
    """A straight run of code: everything that the same loops (unrolled ones aside) are around."""

    times: float = 0.0
    uops: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    vectors: float = 0.0
    issue: float = 0.0
    chains: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def cycles(self, target: Target) -> float:
        """Of all executions together."""
        loads = self.loads / target.rates.get("load", LOADS)
        stores = self.stores / target.rates.get("store", STORES)
        uops = self.uops / target.limits.get("issue_width", WIDTH)
        work = max(uops, loads, stores, self.vectors / VECTORS, self.issue)
        return max(work, max(self.chains.values(), default=0.0))


def cpu_seconds(kernel: Kernel, parts: list[Facts], target: Target) -> dict[str, float]:
    """Seconds by cause, and `total`."""
    totals: dict[str, float] = defaultdict(float)
    for stmt, found in zip(kernel.main.body, parts, strict=True):
        parallel = isinstance(stmt, For) and stmt.kind == "parallel"
        shares = threads_of(found) if parallel else 1.0
        for name, seconds in _part(kernel, found, target, shares).items():
            totals[name] += seconds
        totals["wake"] += WAKE_SECONDS if parallel else 0.0
    totals["call"] = CALL_SECONDS
    totals["total"] = totals["on_core"] + totals["wake"] + totals["call"]
    return dict(totals)


def threads_of(found: Facts) -> float:
    """Iterations of the parallel loop, that is threads."""
    return max((p.trips for t in found.touches for p in t.path[:1] if p.kind == "parallel"), default=1.0)


def _part(kernel: Kernel, found: Facts, target: Target, threads: float) -> dict[str, float]:
    runs = straight_runs(found, target)
    cycles = sum(run.cycles(target) for run in runs.values())
    cycles += sum(BRANCH * p.runs + ENTRY * p.runs / max(1.0, p.trips) for p in _serial(found))
    slowest = max(1.0, imbalance(found))
    core_s = cycles / target.clock_hz / threads * slowest
    caches = [m for m in target.memories if m.name.startswith("L")]
    line = caches[0].line_bytes if caches else 64
    prints = Footprints(kernel.buffers, line)
    touches = found.touches
    waits, shown = 0.0, {}
    for level in caches:
        share = USABLE / (threads if level.shared_by == "device" else 1.0)
        bytes_in = sum(
            b * (2.0 if touches[n].write else 1.0) for n, b in moved(touches, prints, level.bytes * share).items()
        )
        beyond = next((m for m in target.memories[target.memories.index(level) + 1 :]), level)
        speed = beyond.bandwidth_bytes_per_s or DEFAULT_BYTES.get(beyond.name, 8.0) * target.clock_hz
        seconds = bytes_in / speed / (1.0 if beyond.shared_by == "device" else threads / slowest)
        shown[beyond.name] = seconds
        waits = max(waits, seconds) + (1.0 - OVERLAP) * min(waits, seconds)
    on_core = max(core_s, waits) + (1.0 - OVERLAP) * min(core_s, waits)
    return {"arithmetic": core_s, **shown, "on_core": on_core}


def _serial(found: Facts) -> list[Level]:
    return [p for p in found.levels.values() if p.kind != "unrolled"]


def straight_runs(found: Facts, target: Target) -> dict[tuple[int, ...], Run]:
    """The straight runs of code, by the numbers of the loops around them."""
    runs: dict[tuple[int, ...], Run] = defaultdict(Run)
    vector = float(target.limits.get("vector_bytes", 16))
    for touch in found.touches:
        run = runs[key_of(touch.path)]
        n, slots = touch.runs, pieces(touch, vector)
        run.uops += n * slots * (1.0 if touch.pattern.kind != "elements" else SCALAR_PARTS)
        if touch.write:
            run.stores += n * slots
        else:
            run.loads += n * slots
    for issue in found.issues:
        run = runs[key_of(issue.path)]
        timing = issue.intrinsic.timing
        rate = target.rates.get(issue.intrinsic.name) or 1.0 / timing.get("interval", 1.0)
        run.uops += issue.runs
        run.issue += issue.runs / rate
        run.chains[issue.intrinsic.name] += issue.runs / issue.accumulators * timing.get("latency", LATENCY)
    for work in found.works:
        run = runs[key_of(work.path)]
        count = work.runs * max(1.0, work.width * 4 / vector)
        run.uops += count * work.operations
        run.vectors += count * (work.operations + work.calls * LIBRARY_CYCLES)
        if work.chained:
            run.chains["own"] += work.runs * LATENCY
    return runs


def key_of(path: tuple[Level, ...]) -> tuple[int, ...]:
    return tuple(p.number for p in path if p.kind != "unrolled")


def pieces(touch: Touch, vector_bytes: float) -> float:
    """Memory operations of one execution: one a vector where lanes lie together, else one an element."""
    width = touch.lane.width if touch.lane else 1
    if touch.pattern.kind in ("uniform", "contiguous", "group"):
        return max(1.0, width * touch.bytes / vector_bytes)
    return float(width)


def imbalance(found: Facts) -> float:
    """The largest share of a parallel loop's work over the mean, by the loops whose bounds depend on the thread."""
    from autosched.logic import evaluate, free_vars

    worst = 1.0
    for touch in found.touches:
        if not touch.path or touch.path[0].kind != "parallel":
            continue
        thread, count = touch.path[0].var, round(touch.path[0].trips)
        for level in touch.path[1:]:
            if free_vars(level.upper) | free_vars(level.lower) == {thread}:
                trips = [
                    -(
                        -(int(evaluate(level.upper, {thread: t})) - int(evaluate(level.lower, {thread: t})))
                        // level.step
                    )
                    for t in range(count)
                ]
                mean = sum(trips) / count
                worst = max(worst, max(trips) / mean if mean else 1.0)
                break
    return worst
