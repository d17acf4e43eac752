"""Seconds of a kernel on a spatial accelerator: copies, the array and stores as queues that run beside each other.

Three actors, as the controllers of a decoupled access-execute machine (Gemmini, DAC 2021): one loads scratchpads, one
feeds the array, one stores results. Each takes its own commands in the order of the program. Data ties them together:
the array waits until a block has landed, a copy waits until the slot it fills is no longer read, a store waits for its
accumulators. With two slots a copy runs ahead of the array by one block. Copies share one bus to main memory; the array
takes its issues' cycles or the scratchpads' bandwidth, whichever is longer. The host's loops cost nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from math import ceil

from autosched.codegen.kernel import Kernel
from autosched.device.simulator.cpu_model import cpu_estimate
from autosched.device.simulator.engine import TICKS, Code, Outcome, Recorder, Repeat, Take, Use, simulate
from autosched.device.simulator.estimate import Estimate
from autosched.device.simulator.facts import Facts
from autosched.device.simulator.gpu_launch import RefusedError
from autosched.device.simulator.script import Loop, Node, Straight, script
from autosched.device.simulator.walk import turns_of
from autosched.machine.target import Memory, Target

BUS, ARRAY, SCRATCH, ACCUMULATORS = range(4)
SERVERS = ("bus", "array", "scratchpad", "accumulators")
QUEUES = ("load", "execute", "store")
START_SECONDS = 1e-6  # the host's way to the first of commands that follow each other: a round figure


@dataclass
class Amounts:
    """Of all executions together: bytes copied in, bytes stored, bytes that the array reads of scratchpads, and writes
    to and reads from accumulators, cycles of the array, operations."""

    loaded: float = 0.0
    stored: float = 0.0
    scratch: float = 0.0
    accumulated: float = 0.0
    array: float = 0.0
    operations: float = 0.0


@dataclass(frozen=True)
class SpatialRun:
    outcome: Outcome
    totals: Amounts


def spatial_estimate(kernel: Kernel, parts: list[Facts], target: Target) -> Estimate:
    """RefusedError where a scratchpad is too small. What the host computes in between starts the accelerator anew."""
    moved: list[dict[str, float]] = []
    totals: dict[str, float] = defaultdict(float)
    tick = 1.0 / TICKS / target.clock_hz
    started = False
    for stmt, found in zip(kernel.main.body, parts, strict=True):
        before, started = started, on_array(kernel, found)
        if not started:
            alone = cpu_estimate(replace(kernel, main=replace(kernel.main, body=(stmt,))), [found], target)
            moved += alone.moved
            totals["host"] += alone.seconds["total"]
            totals["total"] += alone.seconds["total"]
            continue
        run = play_spatial(kernel, found, target)
        moved.append(_moved(run.totals, target))
        for name, server in (("bus", BUS), ("array", ARRAY), ("scratchpad", SCRATCH)):
            totals[name] += run.outcome.busy[server] * tick
        start = 0.0 if before else START_SECONDS
        totals["start"] += start
        totals["total"] += run.outcome.end * tick + start
    return Estimate(dict(totals), tuple(moved))


def _moved(a: Amounts, target: Target) -> dict[str, float]:
    pads = {what: memory_of(target, what) for what in ("inputs", "accumulators")}
    sizes: dict[str, float] = defaultdict(float)
    for what, size in (("inputs", a.scratch + a.loaded), ("accumulators", 2 * a.accumulated + a.stored)):
        if (pad := pads[what]) is not None:
            sizes[pad.name] += size
    sizes[target.memories[-1].name] += a.loaded + a.stored
    return dict(sizes)


def on_array(kernel: Kernel, found: Facts) -> bool:
    """Whether a statement is the accelerator's; the host runs others."""
    return any(kernel.buffers[name].scope in ("shared", "accumulator") for name in found.buffers)


def play_spatial(kernel: Kernel, found: Facts, target: Target, record: Recorder | None = None) -> SpatialRun:
    """The events of one statement on the accelerator: a nest, or copies before it and stores after it."""
    _check_sizes(kernel, found, target)
    made = _Emit(kernel, found, target)
    programs = made.programs(script(found))
    return SpatialRun(simulate(programs, len(SERVERS), made.tokens, record), made.totals)


def _check_sizes(kernel: Kernel, found: Facts, target: Target) -> None:
    for memory in (m for m in target.memories if m.holds):
        scopes = [s for s, what in (("shared", "inputs"), ("accumulator", "accumulators")) if what in memory.holds]
        held = [b for n, b in kernel.buffers.items() if b.scope in scopes and n in found.buffers]
        used = sum(b.elements * b.dtype.bits // 8 for b in held)
        if used > memory.bytes:
            raise RefusedError(f"{used:,} bytes in {memory.name}; the target has {memory.bytes:,}")


def memory_of(target: Target, what: str) -> Memory | None:
    """The scratchpad that holds `inputs` or `accumulators`; None where the target names none."""
    return next((m for m in target.memories if what in m.holds), None)


@dataclass
class _Job:
    """What one node asks of each queue, and the data that ties it to others: buffer to the queues that touch it."""

    node: Node
    queues: dict[str, Amounts] = field(default_factory=dict)
    data: dict[str, set[str]] = field(default_factory=dict)


class _Emit:
    def __init__(self, kernel: Kernel, found: Facts, target: Target) -> None:
        self.kernel, self.found, self.target = kernel, found, target
        self.totals = Amounts()
        self.tokens: list[int] = []
        main = target.memories[-1]
        self.bus = (main.bandwidth_bytes_per_s or target.clock_hz) / target.clock_hz
        self.latency = (main.latency_s or 0.0) * target.clock_hz
        pads = [memory_of(target, what) for what in ("inputs", "accumulators")]
        self.ports = [(p.bandwidth_bytes_per_s or 1e18) / target.clock_hz if p else 1e18 for p in pads]
        self.into = sorted({i.into for i in found.issues})
        self.slots = {i.into: i.slots for i in found.issues}
        for t in found.touches:
            if t.scope == "shared" and t.write:
                self.slots[t.buffer] = max(turns_of(i) for i in t.index)

    def programs(self, tree: list[Node]) -> list[tuple[Code, ...]]:
        """The code of each queue."""
        made = self.body(tree, 1.0)
        return [tuple(made.get(queue, ())) for queue in QUEUES]

    # -- what is asked -----------------------------------------------------------------------------------------------

    def straight(self, run: Straight) -> _Job:
        job = _Job(run)
        touches = [self.found.touches[n] for n in run.touches]
        filled = [t.buffer for t in touches if t.scope == "shared" and t.write]
        computes = bool(run.issues) or any(t.scope == "shared" and not t.write for t in touches)
        for t in touches:
            size = t.runs * t.bytes * (t.lane.width if t.lane else 1)
            if t.scope == "shared" and t.write:
                self._note(job, "load", t.buffer)
            elif t.scope == "shared":
                self._note(job, "execute", t.buffer).scratch += size
            elif t.write:
                for name in self.into:
                    self._note(job, "store", name)
                job.queues.setdefault("store", Amounts()).stored += size
            elif not computes:  # what is read goes to a scratchpad, or starts accumulators, or joins what is stored
                stores = any(o.write and o.scope != "shared" for o in touches)
                queue = "store" if stores else "load"
                job.queues.setdefault(queue, Amounts()).loaded += size
                if not filled and not stores:
                    for name in self.into:
                        self._note(job, "load", name)
        for issue in run.issues:
            amounts = self._note(job, "execute", issue.into)
            out = issue.intrinsic.accumulator
            amounts.array += issue.runs / self.target.issues(issue.intrinsic)
            amounts.operations += issue.runs * issue.intrinsic.operations
            amounts.accumulated += issue.runs * out.elements * out.dtype.bits / 8
        return job

    def _note(self, job: _Job, queue: str, buffer: str) -> Amounts:
        job.data.setdefault(buffer, set()).add(queue)
        return job.queues.setdefault(queue, Amounts())

    def whole(self, node: Node) -> _Job:
        """Everything inside a node."""
        if isinstance(node, Straight):
            return self.straight(node)
        job = _Job(node)
        for inner in map(self.whole, node.body):
            for queue, amounts in inner.queues.items():
                total = job.queues.setdefault(queue, Amounts())
                for name, value in vars(amounts).items():
                    setattr(total, name, getattr(total, name) + value)
            for buffer, queues in inner.data.items():
                job.data.setdefault(buffer, set()).update(queues)
        return job

    # -- code --------------------------------------------------------------------------------------------------------

    def body(self, nodes: list[Node], trips: float) -> dict[str, list[Code]]:
        """Code of each queue for nodes that run one after another, `trips` times in all. Data that several of them
        touch in different queues is handed on here."""
        jobs = [self.whole(node) for node in nodes]
        code: dict[str, list[Code]] = defaultdict(list)
        before: dict[tuple[int, str], list[int]] = defaultdict(list)
        after: dict[tuple[int, str], list[int]] = defaultdict(list)
        for buffer in sorted({b for job in jobs for b in job.data}):
            if any(len(job.data.get(buffer, ())) > 1 for job in jobs):
                continue  # further in, where it comes and goes
            turns: list[tuple[str, int, int]] = []  # queue, its first and its last job
            for n, job in enumerate(jobs):
                for queue in job.data.get(buffer, ()):
                    if turns and turns[-1][0] == queue:
                        turns[-1] = queue, turns[-1][1], n
                    else:
                        turns.append((queue, n, n))
            if len(turns) < 2:
                continue
            first = len(self.tokens)
            self.tokens += [self.slots.get(buffer, 1), *([0] * (len(turns) - 1))]
            for k, (queue, start, end) in enumerate(turns):
                before[start, queue].append(first + k)
                after[end, queue].append(first + (k + 1) % len(turns))
        for n, job in enumerate(jobs):
            for queue, made in self.job(job, trips, {q: tuple(after[n, q]) for q in QUEUES}).items():
                code[queue] += [*(Take(s) for s in before[n, queue]), *made]
        return code

    def job(self, job: _Job, trips: float, gives: dict[str, tuple[int, ...]]) -> dict[str, list[Code]]:
        """Code of each queue for one job; `gives` are the semaphores to raise when it is done."""
        if not (isinstance(job.node, Loop) and len(job.queues) > 1):
            return {q: [self.use(q, a, trips, gives[q])] for q, a in job.queues.items()}
        count = max(1, round(job.node.level.trips))
        made: dict[str, list[Code]] = {}
        for queue, inner in self.body(job.node.body, trips * count).items():
            done = [Use((), name=queue, gives=gives[queue])] if gives[queue] else []
            made[queue] = [Repeat(count, tuple(inner)), *done]
        return made

    def use(self, queue: str, a: Amounts, trips: float, gives: tuple[int, ...]) -> Use:
        """One command group of a queue, `trips` of them in all."""
        for name, value in vars(a).items():
            setattr(self.totals, name, getattr(self.totals, name) + value)
        moved = (a.loaded + a.stored) / trips
        if queue == "execute":
            ports = (SCRATCH, a.scratch / self.ports[0]), (ACCUMULATORS, a.accumulated / self.ports[1])
            cycles = (ARRAY, a.array), *ports
            uses = tuple((server, _ticks(amount / trips)) for server, amount in cycles if amount)
            return Use(uses, name="compute", amount=a.operations / trips, gives=gives)
        uses = ((BUS, _ticks(moved / self.bus)),) if moved else ()
        wait = queue == "load" and not gives
        return Use(uses, _ticks(self.latency), wait=wait, name=queue, amount=moved, gives=gives)


def _ticks(cycles: float) -> int:
    return ceil(cycles * TICKS)
