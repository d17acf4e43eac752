"""Seconds of a kernel on a spatial accelerator: copies, the array and stores as queues that run beside each other.

Three actors, as the controllers of a decoupled access-execute machine (Gemmini, DAC 2021): one loads scratchpads, one
feeds the array, one stores results. Each takes its own commands in the order of the program. Data ties them together:
the array waits until a block has landed, a copy waits until the slot it fills is no longer read, a store waits for its
accumulators. With two slots a copy runs ahead of the array by one block. Copies share one bus to main memory, and take
the cycles of the instruction that the chip describes for them, whichever is longer; the array takes its issues' cycles
or the scratchpads' bandwidth. What follows on each element of a result is computed on the way out, by the unit
that the target states a rate of, else by the host (`tiling.plans.units`). Loops and commands cost nothing; statements
that never touch a scratchpad run on the host (`host_model`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil

from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.engine import (
    MOST_EVENTS,
    TICKS,
    Code,
    Recorder,
    Repeat,
    Simulated,
    Take,
    TooManyEventsError,
    Use,
    simulate,
)
from autosched.device.simulator.estimate import Estimate, StatementTime
from autosched.device.simulator.gpu.gpu_launch import RefusedError
from autosched.device.simulator.spatial.host_model import play_host
from autosched.device.simulator.spatial.requests import SERVERS, Amounts, Resource
from autosched.device.simulator.spatial.together import QUEUES, Queued, oldest_beside, play_together
from autosched.device.simulator.walk.facts import Facts, Touch
from autosched.device.simulator.walk.script import Node, ScriptLoop, Straight, script
from autosched.device.simulator.walk.walk import turns_of
from autosched.machine.target import Memory, Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.units import NO_UNITS, AcceleratorUnits, Copying, unit_of

START_SECONDS = 1e-6  # the host's way to the first of commands that follow each other, where a target does not say


@dataclass(frozen=True)
class SpatialRun:
    outcome: Simulated
    totals: Amounts


def spatial_estimate(
    kernel: Kernel, parts: list[Facts], target: Target, units: AcceleratorUnits = NO_UNITS
) -> Estimate:
    """RefusedError where a scratchpad is too small. What the host computes in between starts the accelerator anew."""
    moved: list[dict[str, float]] = []
    totals: dict[str, float] = defaultdict(float)
    tick = 1.0 / TICKS / target.clock_hz
    statements: list[StatementTime] = []
    for run in runs(kernel, parts, target, units):
        played = play_run(kernel, run, target, units)
        totals["start"] += run.start
        totals["total"] += played.outcome.end * tick + run.start
        before = 0
        for found, end, busy, amounts in zip(run.parts, played.ends, played.busy, played.amounts, strict=True):
            moved.append(_moved(amounts, target, on_array(kernel, found)))
            busy_s = {name: ticks * tick for name, ticks in zip(SERVERS, busy, strict=True) if ticks}
            for name, seconds_of in busy_s.items():
                totals[name] += seconds_of
            _count(statements, kernel, found, units, (end - before) * tick, busy_s)
            before = end
    seconds = {k: v for k, v in totals.items() if v or k in ALWAYS}
    return Estimate(seconds, tuple(moved), tuple(statements))


def finished_by(found: Facts, units: AcceleratorUnits) -> list[Intrinsic]:
    """The instructions that finish what a statement writes."""
    written = dict.fromkeys(t.buffer for t in found.touches if t.write)
    return [units.finishing[name] for name in written if name in units.finishing]


def _count(
    statements: list[StatementTime],
    kernel: Kernel,
    found: Facts,
    units: AcceleratorUnits,
    seconds: float,
    busy: dict[str, float],
) -> None:
    """Add a top-level statement to what is behind it, or to the first of loops that write nothing to memory yet."""
    if not statements or statements[-1].writes:
        statements.append(StatementTime())
    here = statements[-1]
    written = (t.buffer for t in found.touches if t.write and t.buffer not in units.passing)
    to_memory = (name for name in written if kernel.buffers[name].scope in OUTSIDE)
    here.writes = tuple(dict.fromkeys(to_memory))
    issued = [i.intrinsic.name for i in found.issues]
    issued += [i.name for i in finished_by(found, units)]
    here.instructions = tuple(dict.fromkeys((*here.instructions, *issued)))
    here.seconds += seconds
    for name, own in busy.items():
        here.units[name] = here.units.get(name, 0.0) + own


OUTSIDE = ("global", "workspace")
"""Where buffers are that are in memory."""
ALWAYS = ("bus", "array", "scratchpad", "accumulators", "start", "total")
"""Units that every answer names; others where they do anything."""


def starts(
    kernel: Kernel, parts: Sequence[Facts], target: Target, units: AcceleratorUnits = NO_UNITS
) -> list[float]:
    """Seconds before each statement: the host starts the accelerator where it did not work on the one before. A chip
    without a host starts once. What instructions ask to be configured is set where it is not so yet."""
    first = START_SECONDS if target.start_s is None else target.start_s
    own = [not target.host or on_array(kernel, found) for found in parts]
    now: dict[str, object] = {}
    found = []
    for part, mine, before in zip(parts, own, [False, *own], strict=False):
        used = [*(i.intrinsic for i in part.issues), *finished_by(part, units)]
        setting = units.configuring(target, used, now) / target.clock_hz
        found.append((first if mine and not before else 0.0) + setting)
    return found


@dataclass(frozen=True)
class StatementRun:
    """Statements that may run beside each other, and seconds before the first."""

    parts: tuple[Facts, ...]
    start: float


def runs(
    kernel: Kernel, parts: Sequence[Facts], target: Target, units: AcceleratorUnits = NO_UNITS
) -> list[StatementRun]:
    """The statements in order: those of the accelerator that follow each other are one run, unless something is set in
    between that they compute with; each of the host's is a run of its own."""
    found: list[StatementRun] = []
    for part, start in zip(parts, starts(kernel, parts, target, units), strict=True):
        last = found[-1] if found else None
        beside = last is not None and on_array(kernel, part) and on_array(kernel, last.parts[-1])
        if last is not None and beside and (not start or not any(p.issues for p in last.parts)):
            found[-1] = StatementRun((*last.parts, part), last.start + start)
        else:
            found.append(StatementRun((part,), start))
    return found


@dataclass(frozen=True)
class PlayedRun:
    """What was played; of each statement the tick when it and all before it are done, ticks of each server, and what it
    asks of each unit."""

    outcome: Simulated
    ends: tuple[int, ...]
    busy: tuple[tuple[int, ...], ...]
    amounts: tuple[Amounts, ...]


def queued_statements(
    kernel: Kernel, run: StatementRun, target: Target, units: AcceleratorUnits
) -> tuple[list[Queued], list[int], tuple[Amounts, ...]]:
    """The statements of a run for their queues, the first values of their semaphores, and what each asks of units."""
    tokens: list[int] = []
    for found in run.parts:
        _check_sizes(kernel, found, target)
    made = [_Emit(kernel, found, target, units, tokens) for found in run.parts]
    return [m.queued() for m in made], tokens, tuple(m.totals for m in made)


def play_run(
    kernel: Kernel,
    run: StatementRun,
    target: Target,
    units: AcceleratorUnits = NO_UNITS,
    record: Recorder | None = None,
    most: int = MOST_EVENTS,
) -> PlayedRun:
    """The events of statements that run beside each other; one after the other where these are more than `most`."""
    if len(run.parts) > 1:
        queued, tokens, asked = queued_statements(kernel, run, target, units)
        oldest = oldest_beside(kernel, run.parts, target)
        try:
            both = play_together(queued, tokens, oldest, record, most)
            return PlayedRun(both.outcome, both.ends, both.busy, asked)
        except TooManyEventsError:
            alone = [play_run(kernel, StatementRun((found,), 0.0), target, units) for found in run.parts]
            ends = tuple(accumulate(p.outcome.end for p in alone))
            busy = tuple(map(sum, zip(*(p.outcome.busy for p in alone), strict=True)))
            events, skipped = (sum(getattr(p.outcome, n) for p in alone) for n in ("events", "skipped"))
            outcome = Simulated(ends[-1], (ends[-1],), busy, events, skipped + 1)
            amounts = tuple(a for p in alone for a in p.amounts)
            return PlayedRun(outcome, ends, tuple(p.outcome.busy for p in alone), amounts)
    (found,) = run.parts
    if on_array(kernel, found):
        one = play_spatial(kernel, found, target, units, record)
    else:
        one = SpatialRun(*play_host(found, target, units, record))
    return PlayedRun(one.outcome, (one.outcome.end,), (one.outcome.busy,), (one.totals,))


def _moved(a: Amounts, target: Target, scratch: bool) -> dict[str, float]:
    pads = {what: memory_of(target, what) for what in ("inputs", "accumulators")}
    sizes: dict[str, float] = defaultdict(float)
    for what, size in (("inputs", a.scratch + a.loaded), ("accumulators", 2 * a.accumulated + a.stored)):
        if (pad := pads[what]) is not None and scratch:
            sizes[pad.name] += size
    sizes[target.memories[-1].name] += a.loaded + a.stored
    return dict(sizes)


def on_array(kernel: Kernel, found: Facts) -> bool:
    """Whether a statement is the accelerator's; the host runs others."""
    return any(kernel.buffers[name].scope in ("shared", "accumulator") for name in found.buffers)


def play_spatial(
    kernel: Kernel, found: Facts, target: Target, units: AcceleratorUnits = NO_UNITS, record: Recorder | None = None
) -> SpatialRun:
    """The events of one statement on the accelerator: a nest, or copies before it and stores after it."""
    _check_sizes(kernel, found, target)
    made = _Emit(kernel, found, target, units)
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
    def __init__(
        self,
        kernel: Kernel,
        found: Facts,
        target: Target,
        units: AcceleratorUnits,
        tokens: list[int] | None = None,
    ) -> None:
        """`tokens` are semaphores of other statements; those of this one join them."""
        self.kernel, self.found, self.target, self.units = kernel, found, target, units
        self.totals = Amounts()
        self.tokens: list[int] = [] if tokens is None else tokens
        self.reads: dict[str, set[str]] = {q: set() for q in QUEUES}
        self.writes: dict[str, set[str]] = {q: set() for q in QUEUES}
        main = target.memories[-1]
        self.bus = (main.bandwidth_bytes_per_s or target.clock_hz) / target.clock_hz
        self.latency = dict.fromkeys(QUEUES, (main.latency_s or 0.0) * target.clock_hz)
        pads = [memory_of(target, what) for what in ("inputs", "accumulators")]
        self.ports = [(p.bandwidth_bytes_per_s or 1e18) / target.clock_hz if p else 1e18 for p in pads]
        self.into = sorted({i.into for i in found.issues})
        self.slots = {i.into: i.slots for i in found.issues}
        for t in found.touches:
            if t.scope == "shared" and t.write:
                self.slots[t.buffer] = max(turns_of(i) for i in t.index)
        known = {q: [c.latency for c in self.copies(q) if c.latency is not None] for q in QUEUES}
        self.latency |= {q: max(stated) for q, stated in known.items() if stated}

    def programs(self, tree: list[Node]) -> list[tuple[Code, ...]]:
        """The code of each queue."""
        made = self.body(tree, 1.0)
        return [tuple(made.get(queue, ())) for queue in QUEUES]

    def queued(self) -> Queued:
        """The statement's code, and which queue reads and writes which buffers: each of them what none is charged for,
        as accumulators that are set, or taken out, by a statement of their own."""
        codes = self.programs(script(self.found))
        known = set().union(*self.reads.values(), *self.writes.values())
        for name in self.found.buffers - known:
            if self.kernel.buffers[name].scope != "register":
                for queue in QUEUES:
                    self.reads[queue].add(name)
                    self.writes[queue].add(name)
        return Queued(tuple(codes), self.reads, self.writes)

    # -- what is asked -----------------------------------------------------------------------------------------------

    def straight(self, run: Straight) -> _Job:
        job = _Job(run)
        touches = [self.found.touches[n] for n in run.touches]
        filled = [t.buffer for t in touches if t.scope == "shared" and t.write]
        computes = bool(run.issues) or any(t.scope == "shared" and not t.write for t in touches)
        for t in touches:
            size = t.runs * t.bytes * (t.lane.width if t.lane else 1)
            if t.scope == "shared" and t.write:
                self._note(job, "load", t.buffer).copies += self.copy_cycles(t, "load")
                self.writes["load"].add(t.buffer)
            elif t.scope == "shared":
                self._note(job, "execute", t.buffer).scratch += size
                self.reads["execute"].add(t.buffer)
            elif t.write:
                self.writes["store"].add(t.buffer)
                self.reads["store"].update(self.into)
                for name in self.into:
                    self._note(job, "store", name)
                amounts = job.queues.setdefault("store", Amounts())
                finish = self.units.finish(self.target, t.buffer, t.lane.width if t.lane else 1)
                amounts.vector += t.runs * finish if finish is not None else 0.0
                if t.buffer in self.units.passing:
                    continue
                amounts.stored += size
                amounts.copies += self.copy_cycles(t, "store")
            elif not computes and t.buffer not in self.units.passing:
                # What is read goes to a scratchpad, or starts accumulators, or joins what is stored.
                stores = any(o.write and o.scope != "shared" for o in touches)
                queue = "store" if stores else "load"
                job.queues.setdefault(queue, Amounts()).loaded += t.runs * t.bytes * distinct(t)
                self.reads[queue].add(t.buffer)
                if not filled and not stores:
                    self.writes["load"].update(self.into)
                    for name in self.into:
                        self._note(job, "load", name)
            elif computes:
                self.reads["execute"].add(t.buffer)
        for issue in run.issues:
            amounts = self._note(job, "execute", issue.into)
            self.writes["execute"].add(issue.into)
            out = issue.intrinsic.accumulator
            cycles = issue.runs / self.target.issues(issue.intrinsic)
            if unit_of(issue.intrinsic) == "array":
                amounts.array += cycles
            else:
                amounts.vector += cycles
            amounts.operations += issue.runs * issue.intrinsic.operations
            amounts.accumulated += issue.runs * out.elements * out.dtype.bits / 8
        for work in run.works if not run.issues else ():  # what an issue takes is brought in place by copies
            if self.kernel.buffers[work.into].scope != "shared":  # zeros for what the program has not: no arithmetic
                job.queues.setdefault("store", Amounts()).compute(work, self.units, self.target)
        return job

    def copies(self, queue: str) -> list[Copying]:
        """The instructions that the chip describes for what a queue moves."""
        found = (self.copying(t, queue) for t in self.found.touches if t.write)
        return [c for c in found if c is not None]

    def copying(self, touch: Touch, queue: str) -> Copying | None:
        """The instruction for a copy into a scratchpad, or out of accumulators."""
        dtype = self.kernel.buffers[touch.buffer].dtype
        if touch.scope == "shared":
            return self.units.copying(self.target, "memory", "inputs", dtype, dtype) if queue == "load" else None
        if queue != "store" or not self.into:
            return None
        sums = self.kernel.buffers[self.into[0]].dtype
        return self.units.leaving(self.target, touch.buffer, sums, dtype)

    def copy_cycles(self, touch: Touch, queue: str) -> float:
        """Cycles of the unit that makes a touch's copies."""
        copying = self.copying(touch, queue)
        return touch.runs * copying.cycles(touch.lane.width if touch.lane else 1) if copying else 0.0

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
                job.queues.setdefault(queue, Amounts()).add(amounts)
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
        if not (isinstance(job.node, ScriptLoop) and len(job.queues) > 1):
            return {q: [self.use(q, a, trips, gives[q])] for q, a in job.queues.items()}
        count = max(1, round(job.node.level.trips))
        made: dict[str, list[Code]] = {}
        for queue, inner in self.body(job.node.body, trips * count).items():
            done = [Use((), name=queue, gives=gives[queue])] if gives[queue] else []
            made[queue] = [Repeat(count, tuple(inner)), *done]
        return made

    def use(self, queue: str, a: Amounts, trips: float, gives: tuple[int, ...]) -> Use:
        """One command group of a queue, `trips` of them in all."""
        self.totals.add(a)
        moved = (a.loaded + a.stored) / trips
        if queue == "execute":
            scratch, accumulators = a.scratch / self.ports[0], a.accumulated / self.ports[1]
            units = (Resource.ARRAY, a.array), (Resource.VECTOR, a.vector)
            cycles = *units, (Resource.SCRATCH, scratch), (Resource.ACCUMULATORS, accumulators)
            uses = tuple((server, _ticks(amount / trips)) for server, amount in cycles if amount)
            return Use(uses, name="compute", amount=a.operations / trips, gives=gives)
        copier = Resource.COPIES_IN if queue == "load" else Resource.COPIES_OUT
        asked = (copier, a.copies), (Resource.VECTOR, a.vector), (Resource.HOST, a.host)
        uses = ((Resource.BUS, _ticks(moved / self.bus)),) if moved else ()
        uses += tuple((server, _ticks(amount / trips)) for server, amount in asked if amount)
        wait = queue == "load" and not gives
        return Use(uses, _ticks(self.latency[queue]), wait=wait, name=queue, amount=moved, gives=gives)


def distinct(touch: Touch) -> int:
    """Elements that one execution touches, each once: a row that is the same for all of a tile's is read once."""
    if touch.lane is None:
        return 1
    offsets = touch.pattern.offsets
    return touch.lane.width if offsets is None else len(set(offsets))


def _ticks(cycles: float) -> int:
    return ceil(cycles * TICKS)
