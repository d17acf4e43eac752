"""The commands of a statement on a spatial accelerator as queues: copies in, the array, stores, loads of its states."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil

from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.engine import TICKS, Code, Repeat, Take, Use
from autosched.device.simulator.spatial.requests import Amounts, Resource
from autosched.device.simulator.spatial.script_pieces import apart
from autosched.device.simulator.spatial.together import QUEUES, Queued
from autosched.device.simulator.walk.facts import Facts, Touch
from autosched.device.simulator.walk.script import Node, ScriptLoop, Straight, script
from autosched.device.simulator.walk.walk import turns_of
from autosched.machine.target import Memory, Target
from autosched.tiling.plans.units import AcceleratorUnits, Copying, unit_of


def memory_of(target: Target, what: str) -> Memory | None:
    """The scratchpad that holds `inputs` or `accumulators`; None where the target names none."""
    return next((m for m in target.memories if what in m.holds), None)


@dataclass
class _Job:
    """What one node asks of each queue, and the data that ties it to others: buffer to the queues that touch it."""

    node: Node
    queues: dict[str, Amounts] = field(default_factory=dict)
    data: dict[str, set[str]] = field(default_factory=dict)


class StatementQueues:
    """What a statement asks of each unit, as code of the queues."""

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
        self.loadings: dict[str, Copying] = {}
        for t in found.touches:
            if t.scope == "state" and t.write and (loading := self.loading(t.buffer)) is not None:
                self.loadings[t.buffer] = loading
                self.slots[t.buffer] = 2 if loading.ahead else 1
        known = {q: [c.latency for c in self.copies(q) if c.latency is not None] for q in QUEUES}
        self.latency |= {q: max(stated) for q, stated in known.items() if stated}

    def programs(self, tree: list[Node]) -> list[tuple[Code, ...]]:
        """The code of each queue."""
        made = self.body(apart(tree, self.found), 1.0)
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
        taker = "preload" if any(t.scope == "state" and t.write for t in touches) else "execute"
        for t in touches:
            size = t.runs * t.bytes * (t.lane.width if t.lane else 1)
            if t.scope == "state":  # one of all statements, which is no memory
                amounts = self._note(job, taker, t.buffer)
                amounts.states += self.load_cycles(t) if t.write else 0.0
                (self.writes if t.write else self.reads)[taker].add(f"state {self.kernel.buffers[t.buffer].origin}")
            elif t.scope == "shared" and t.write:
                self._note(job, "load", t.buffer).copies += self.copy_cycles(t, "load")
                self.writes["load"].add(t.buffer)
            elif t.scope == "shared":
                self._note(job, taker, t.buffer).scratch += size
                self.reads[taker].add(t.buffer)
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

    def loading(self, buffer: str) -> Copying | None:
        """The instruction that loads a state."""
        state = self.kernel.buffers[buffer].origin
        held = (o for i in self.kernel.intrinsics for o in i.held if o.state == state)
        return next((self.units.loading(self.target, o) for o in held), None)

    def load_cycles(self, touch: Touch) -> float:
        """Cycles of the unit that loads states."""
        loading = self.loadings.get(touch.buffer)
        return touch.runs * loading.cycles(touch.lane.width if touch.lane else 1) if loading else 0.0

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

    def first_load(self) -> int:
        """Ticks until what a load brings is in its state."""
        return _ticks(max((c.latency or 0.0 for c in self.loadings.values()), default=0.0))

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
        if queue == "preload":
            loaded = (Resource.LOADS, a.states), (Resource.SCRATCH, a.scratch / self.ports[0])
            uses = tuple((server, _ticks(amount / trips)) for server, amount in loaded if amount)
            return Use(uses, least=self.first_load(), name="load", amount=a.scratch / trips, gives=gives)
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
