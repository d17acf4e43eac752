"""What only Hopper has, as lines of CUDA C++: boxes that TMA moves, barriers in shared memory, roles, and
groups of calls that take their operands from shared memory.

One thread asks TMA, and one thread signals for a worker. A barrier in shared memory passes through phases:
a full stage's has one arrival, of the thread that says how many bytes will come; an empty stage's has one of every
worker that reads it, in each block of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from autosched.codegen.cuda.fragments.fragments import LANE
from autosched.codegen.cuda.fragments.lane_registers import ACROSS, ALONG, HELD
from autosched.codegen.cuda.grids import WARP
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCalls,
    AsyncCopies,
    BarrierArrive,
    BarrierWait,
    For,
    IntrinsicCall,
    RegisterRef,
    Stmt,
    TileCopy,
    WaitCalls,
    WarpSpecialize,
    statements,
)
from autosched.logic import FALSE, TRUE, Const, Int

INDENT = "    "
DESCRIBED_BITS = 128
"""What a descriptor counts addresses in: 16 bytes (PTX ISA, matrix descriptor)."""
WORKERS_BARRIER = 1
"""The number of the barrier at which a block's consumers meet: 0 is the whole block's, those behind are of single
workers."""
Body = Callable[[tuple[Stmt, ...]], Iterator[str]]


class EnginePrinter:
    """Prints such statements of a launch's `body`; `threads` are those of its workers, `cluster` blocks share one."""

    def __init__(self, scope: CudaScope, body: tuple[Stmt, ...], threads: int, cluster: int) -> None:
        self.scope, self.threads, self.cluster = scope, threads, cluster
        groups = [s for s in statements(body) if isinstance(s, AsyncCalls)]
        calls = [s for s in statements(tuple(groups)) if isinstance(s, IntrinsicCall)]
        self.sums = list(dict.fromkeys(s.operands[s.intrinsic.accumulator.name].buffer for s in calls))
        self.warps = any(isinstance(s, For) and s.kind == "warp" for s in statements(body))
        self.everywhere = {s.barrier for s in statements(body) if isinstance(s, BarrierWait) and s.everywhere}
        self.beside = False  # whether workers run beside a producer
        self.single = False  # whether one thread alone runs what is printed
        self.landing = ""  # the barrier that boxes count at

    def block_barrier(self) -> str:
        """A barrier of the workers that run together."""
        if self.beside:
            self.use("barrier")
            return f"meet({WORKERS_BARRIER}, {self.threads});"
        if self.cluster > 1:
            self.use("cluster")
            return "meet_cluster();"
        return "__syncthreads();"

    def worker_barrier(self) -> str:
        """A barrier of one worker's threads."""
        lanes = self.scope.lanes
        if lanes == WARP:
            return "__syncwarp();"
        self.use("barrier")
        worker = next(reversed(self.scope.workers))
        return f"meet({self.scope.spell(worker)} + {WORKERS_BARRIER + 1}, {lanes});"

    def use(self, header: str) -> None:
        self.scope.used.headers.add(header)

    # -- copies --------------------------------------------------------------------------------------------------------

    def fetch(self, stmt: AsyncCopies, body: Body) -> Iterator[str]:
        """The engine fetches boxes, which count at a barrier, or stores them."""
        self.use("bulk")
        before, self.landing = self.landing, self.slot(stmt.barrier, stmt.slot) if stmt.barrier else ""
        lines = list(body(stmt.body))
        if stmt.barrier:
            lines.insert(0, f"barrier_expect({self.landing}, {self.bytes(stmt)});")
        else:
            lines.append("commit_stores();")
        self.landing = before
        yield from self.alone(lines)

    def bytes(self, stmt: AsyncCopies) -> int:
        """Bytes that come to one block's stage."""
        found = {s.buffer for s in statements(stmt.body) if isinstance(s, TileCopy)}
        buffers = [self.scope.buffer(name) for name in sorted(found)]
        return sum(b.elements * b.dtype.bits // 8 for b in buffers) // self.scope.kernel.barriers[stmt.barrier]

    def tile_copy(self, stmt: TileCopy) -> str:
        scope = self.scope
        at = ", ".join(scope.index.number(c) for c in (*stmt.coordinates, *stmt.inside))
        what = "pixels" if stmt.map.walk else "box"
        place, seen = scope.address(stmt.buffer, stmt.index), scope.names(stmt.map.name)
        if stmt.store:
            return f"store_box({seen}, {place}, {at});"
        if stmt.blocks > 1:
            return f"fetch_{what}_for({self.receivers(stmt)}, {place}, {seen}, {self.landing}, {at});"
        return f"fetch_{what}({place}, {seen}, {self.landing}, {at});"

    def receivers(self, stmt: TileCopy) -> str:
        """The blocks of a cluster that a box is for, a bit each."""
        bits, first = sum(1 << (k * stmt.apart) for k in range(stmt.blocks)), self.scope.simplifier.number(stmt.first)
        return str(bits) if first == Const(0) else f"{bits} << ({self.scope.index.number(first)})"

    def stored(self) -> Iterator[str]:
        """The thread that asked the engine to store goes on once the boxes have been read."""
        self.use("bulk")
        yield from self.alone(["wait_stores_read<0>();"])

    def alone(self, lines: list[str]) -> Iterator[str]:
        """Lines of one thread of a worker."""
        if self.single or self.scope.lanes == 1:
            yield from lines
            return
        lane = self.scope.spell(LANE)
        if len(lines) == 1:
            yield f"if ({lane} == 0) {lines[0]}"
            return
        yield f"if ({lane} == 0) {{"
        yield from (INDENT + line for line in lines)
        yield "}"

    # -- barriers ------------------------------------------------------------------------------------------------------

    def slot(self, barrier: str, slot: Int) -> str:
        self.use("barrier")
        return f"&{self.scope.names(barrier)}[{self.scope.index.number(slot)}]"

    def barrier_wait(self, stmt: BarrierWait) -> str:
        parity = self.scope.index.number((stmt.phase + 2) % 2)
        verb = "barrier_wait_cluster" if stmt.everywhere and self.cluster > 1 else "barrier_wait"
        return f"{verb}({self.slot(stmt.barrier, stmt.slot)}, {parity});"

    def barrier_arrive(self, stmt: BarrierArrive) -> Iterator[str]:
        """Every worker signals once, to each block of its cluster. A warp's lanes have all read by then; products of a
        warpgroup are waited for together."""
        lane, slot = self.scope.spell(LANE), self.slot(stmt.barrier, stmt.slot)
        if self.warps:
            yield "__syncwarp();"
        if self.cluster > 1 and not stmt.own:
            how = "barrier_release" if stmt.barrier in self.everywhere else "barrier_arrive"
            yield f"if ({lane} < {self.cluster}) {how}({slot}, {lane});"
        else:
            yield f"if ({lane} == 0) barrier_arrive({slot});"

    def frame(self, barriers: dict[str, int], arrivals: dict[str, int], maps: Iterable[str]) -> Iterator[str]:
        """One thread makes the barriers (of so many slots and arrivals), while the `maps` are on their way; then all
        blocks of the cluster know them."""
        if not barriers:
            return
        self.use("barrier")
        yield "if (threadIdx.x == 0) {"
        yield from (f"{INDENT}prefetch_map({self.scope.names(name)});" for name in maps)
        for name, slots in barriers.items():
            one = f"barrier_init(&{self.scope.names(name)}[s], {arrivals[name]});"
            yield INDENT + f"for (int s = 0; s < {slots}; ++s) {one}"
        yield INDENT + "fence_barriers();"
        yield "}"
        if self.cluster > 1:
            self.use("cluster")
        yield "meet_cluster();" if self.cluster > 1 else "__syncthreads();"

    # -- roles ---------------------------------------------------------------------------------------------------------

    def warp_specialize(self, stmt: WarpSpecialize, bodies: list[Callable[[], Iterator[str]]]) -> Iterator[str]:
        """The producer is one thread of the warpgroup behind the workers, who are everybody else."""
        self.use("roles")
        producer, consumers = bodies
        self.single = True
        lines = list(producer())
        self.single, self.beside = False, True
        others = list(consumers())
        self.beside = False
        few, many = stmt.registers or (0, 0)
        yield f"if (threadIdx.x >= {self.threads}) {{  // {stmt.names[0]}"
        if few:
            yield INDENT + f"keep_registers<{few}>();"
        yield INDENT + f"if (threadIdx.x == {self.threads}) {{"
        yield from (INDENT * 2 + line for line in lines)
        yield INDENT + "}"
        yield f"}} else {{  // {stmt.names[1]}"
        if many:
            yield INDENT + f"take_registers<{many}>();"
        yield from (INDENT + line for line in others)
        yield "}"

    # -- calls ---------------------------------------------------------------------------------------------------------

    def async_calls(self, stmt: AsyncCalls, body: Body) -> Iterator[str]:
        self.use("wgmma")
        yield "group_begin();"
        yield from body(stmt.body)
        yield "group_end();"

    def wait_calls(self, stmt: WaitCalls) -> Iterator[str]:
        """Where nothing is under way any more, sums may be read: not before, says `hold` to the compiler."""
        self.use("wgmma")
        yield f"group_wait<{stmt.pending}>();"
        if stmt.pending == 0:
            yield from (f"hold({self.scope.names(name)});" for name in self.sums)

    def filled(self, phase: For) -> Iterator[str]:
        """Sums that a phase sets before others call are in their registers where it ends, says `hold` to the compiler:
        set later, while calls on other sums run, they would make each call wait for the one before."""
        if self.sums and not any(isinstance(s, AsyncCalls) for s in statements(phase.body)):
            made = {s.buffer for s in statements(phase.body) if isinstance(s, Assign)}
            yield from (f"hold({self.scope.names(name)});" for name in self.sums if name in made)

    def call(self, stmt: IntrinsicCall) -> str:
        """A call some of whose operands are in shared memory."""
        self.use("wgmma")
        scope, intrinsic = self.scope, stmt.intrinsic
        operands = [*(o for o in intrinsic.operands.values() if o.written)]
        operands += [o for o in intrinsic.operands.values() if not o.written]
        texts, majors = [], {}
        for operand in operands:
            ref = stmt.operands[operand.name]
            if ref.descriptor is not None:
                texts.append(self.descriptor(ref))
                majors[operand.name] = ACROSS if ref.descriptor.across else ALONG
            else:
                texts.append(scope.array(scope.layouts[ref.buffer], (*ref.index, Const(0))))
                majors[operand.name] = HELD
        name = scope.used.issue(intrinsic, tuple(majors[o] for o in intrinsic.shared_memory))
        known = scope.simplifier.condition(stmt.zero_init)
        keep = str(int(known == FALSE)) if known in (TRUE, FALSE) else f"!({scope.index.condition(known)})"
        return f"{name}({', '.join(texts)}, {keep});"

    def descriptor(self, ref: RegisterRef) -> str:
        found = ref.descriptor
        assert found is not None
        scope, name = self.scope, self.scope.names(ref.buffer)
        chunks = scope.simplifier.number(found.start * scope.buffer(ref.buffer).dtype.bits // DESCRIBED_BITS)
        first = f"descriptor<{found.swizzle}>({name}, {found.leading}, {found.stride})"
        return first if chunks == Const(0) else f"{first} + ({scope.index.number(chunks)})"


def arrivals_of(body: tuple[Stmt, ...], workers: int, cluster: int) -> dict[str, int]:
    """Arrivals that end a phase of each barrier: those of boxes are announced by one thread, others are of workers."""
    found: dict[str, int] = {}
    for stmt in statements(body):
        if isinstance(stmt, AsyncCopies) and stmt.barrier:
            found[stmt.barrier] = 1
        elif isinstance(stmt, BarrierArrive):
            found[stmt.barrier] = workers if stmt.own else workers * cluster
    return found


def maps_of(body: tuple[Stmt, ...]) -> dict[str, TileCopy]:
    """The boxes whose maps a launch takes, by the map's name."""
    return {s.map.name: s for s in statements(body) if isinstance(s, TileCopy)}
