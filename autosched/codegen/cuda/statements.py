"""Statements of a loop tree as lines of CUDA C++, for one thread of one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from autosched.codegen import workarounds
from autosched.codegen.analysis.barriers import Path
from autosched.codegen.analysis.held_registers import THREADS_OF
from autosched.codegen.c_like.blocks import loop_head
from autosched.codegen.c_like.indices import loop_range
from autosched.codegen.cuda.assign import CudaAssignPrinter
from autosched.codegen.cuda.fragments.fragments import THREAD
from autosched.codegen.cuda.fragments.ldmatrix import joined_load
from autosched.codegen.cuda.hopper import EnginePrinter
from autosched.codegen.cuda.induction_counters import Ring
from autosched.codegen.cuda.scope import CudaScope, Early
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import (
    WORKERS,
    Assign,
    AsyncCalls,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    BarrierWait,
    Branch,
    Chosen,
    Comment,
    Configure,
    For,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Prefetch,
    Stmt,
    StoreFence,
    TileCopy,
    WaitCalls,
    WaitCopies,
    WarpSpecialize,
    WorkerBarrier,
    bodies,
    statements,
)
from autosched.codegen.tree.uses import places
from autosched.errors import UsageError
from autosched.escape import in_comment
from autosched.logic import FALSE, TRUE, Bool, Compare, Const, Int, Var, affine, conjuncts, free_vars

INDENT = "    "
MOST_UNROLLED = 16
"""Trips of a worker's share of a copy, which is unrolled."""
MOST_ISSUED = 512
"""Instructions and copies of a short loop, all its trips together, which is unrolled: about what an instruction cache
of an SM holds beside the rest (128 KB, 16 bytes each, several to a copy)."""
LONE = 16
"""The same in a launch of one thread."""
STEP = ".turn"


class CudaStatementPrinter:
    """Prints the body of one launch; `barriers` are the phases that a barrier stands before."""

    def __init__(self, scope: CudaScope, barriers: set[Path], engine: EnginePrinter) -> None:
        self.scope, self.barriers, self.engine = scope, barriers, engine
        self.assigns = CudaAssignPrinter(scope)

    def body(self, statements: tuple[Stmt, ...], path: Path | None = None) -> Iterator[str]:
        for number, stmt in enumerate(statements):
            here = (*path, number) if path is not None else None
            if here in self.barriers:
                yield self.engine.block_barrier()
            lines = list(self.statement(stmt, here))
            if path == ():
                yield from self.scope.declared
                self.scope.declared.clear()
            yield from lines

    def inside(self, statements: tuple[Stmt, ...], path: Path | None = None) -> Iterator[str]:
        """A loop's body."""
        self.scope.loops += 1
        lines = list(self.body(statements, path))
        self.scope.loops -= 1
        yield from (INDENT + line for line in lines)

    def statement(self, stmt: Stmt, path: Path | None) -> Iterator[str]:
        scope = self.scope
        match stmt:
            case For():
                yield from self._for(stmt, path)
            case If(condition, body):
                known = scope.simplifier.condition(condition)
                if known == TRUE:
                    yield from self.body(body, path)
                elif known != FALSE and (free := free_vars(known) or body):
                    with scope.ranged(narrowed(known, scope.ranges)), scope.beginning(None):
                        inner = list(self.inside(body, path))
                    if inner:
                        yield f"if ({scope.index.condition(known)}) {{" if free else "{"
                        yield from inner
                        yield "}"
            case Branch(data, body):
                yield f"if ({scope.values.condition(data)}) {{"
                with scope.beginning(None):
                    yield from self.inside(body, path)
                yield "}"
            case Assign():
                meets = stmt.buffer in scope.passed and not scope.workers
                yield from ["__syncwarp();"] * meets
                yield from self.assigns.lines(stmt)
                yield from ["__syncwarp();"] * meets
            case IntrinsicCall():
                yield from self._call(stmt)
            case AsyncCopies() if any(isinstance(s, TileCopy) for s in statements(stmt.body)):
                yield from self.engine.fetch(stmt, self.body)
            case AsyncCopies(body, "", _):
                scope.running, before = True, scope.running
                yield from self.body(body)
                scope.running = before
                scope.used.headers.add("copy")
                yield "end_copies();"
            case WaitCopies(_, engine=True):
                yield from self.engine.stored()
            case WaitCopies(pending):
                scope.used.headers.add("copy")
                yield f"wait_copies<{pending}>();"
            case Comment(text):
                yield from (f"// {in_comment(line)}".rstrip() for line in text.splitlines())
            case Chosen():
                yield from self._chosen(stmt, path)
            case Prefetch() | StoreFence() | Configure():
                return
            case TileCopy():
                yield self.engine.tile_copy(stmt)
            case AsyncCalls():
                yield from self.engine.async_calls(stmt, self.body)
            case WaitCalls():
                yield from self.engine.wait_calls(stmt)
            case WorkerBarrier():
                yield self.engine.worker_barrier()
            case AsyncProxyFence():
                scope.used.headers.add("barrier")
                yield "fence_async();"
            case BarrierWait():
                yield self.engine.barrier_wait(stmt)
            case BarrierArrive():
                yield from self.engine.barrier_arrive(stmt)
            case WarpSpecialize(_, parts):
                yield from self._warp_specialize(stmt, parts, path)
            case GuardedDispatch() | AsyncCopies():
                raise UsageError("a choice inside a block is not printed", hint="rows without it")
            case _:
                assert_never(stmt)

    def _chosen(self, stmt: Chosen, path: Path | None) -> Iterator[str]:
        """All threads of a block choose alike."""
        scope = self.scope
        var, last = scope.names.local(stmt.var), stmt.extent - 1
        first = last if stmt.value.dtype.name == "u64" else 0  # its greatest numbers have no sign
        with scope.ranged({stmt.var: (0, last)}), scope.beginning(None):
            inner = list(self.inside(stmt.body, path))
        yield "{"
        yield f"{INDENT}int64_t {var}_wanted = {scope.values.value(stmt.value)};"
        chosen = f"{var}_wanted < 0 ? {first} : {var}_wanted < {last} ? {var}_wanted : {last}"
        yield f"{INDENT}const int {var} = (int)({chosen});"
        yield from inner
        yield "}"

    def _warp_specialize(
        self, stmt: WarpSpecialize, parts: tuple[tuple[Stmt, ...], ...], path: Path | None
    ) -> Iterator[str]:
        def part(number: int, body: tuple[Stmt, ...]) -> Callable[[], Iterator[str]]:
            return lambda: self.body(body, None if path is None else (*path, number))

        yield from self.engine.warp_specialize(stmt, [part(k, body) for k, body in enumerate(parts)])

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _for(self, loop: For, path: Path | None) -> Iterator[str]:
        if loop.kind in WORKERS:
            yield from self._workers(loop, path)
        elif (shared := self._shared_out(loop)) is not None:
            yield from shared
        else:
            yield from self._plain(loop, path)

    def _workers(self, loop: For, path: Path | None) -> Iterator[str]:
        """A phase: every worker runs it, as its own number."""
        scope = self.scope
        assert isinstance(loop.upper, Const)
        count = loop.upper.value
        scope.workers[loop.var] = count
        each = THREADS_OF.get(loop.kind, 0)
        some = 0 < count * each < scope.threads
        with scope.workers_of(THREADS_OF.get(loop.kind, scope.lanes)), scope.ranged({loop.var: (0, count - 1)}):
            if loop.note:
                yield f"// {in_comment(loop.note)}"
            if some:  # of a phase that the block has more threads than
                yield f"if ({scope.names.local(loop.var)} < {count}) {{"
                with scope.beginning(None):
                    yield from (INDENT + line for line in self.body(loop.body, None))
                yield "}"
            else:
                yield from self.body(loop.body, None if path is None else path)
        yield from self.engine.filled(loop)
        del scope.workers[loop.var]

    def _shared_out(self, loop: For) -> list[str] | None:
        """A loop of which each worker takes every so many trips: its lanes take them in turn."""
        scope = self.scope
        mine = [w for w in scope.workers if w in free_vars(loop.lower)]
        if not mine or loop.kind != "serial":
            return None
        worker = mine[-1]
        form = affine(loop.lower)
        if form is None or form.coefficient(worker) * scope.workers[worker] != loop.step:
            return None
        begin = scope.simplifier.number(loop.lower - Var(worker) * form.coefficient(worker))
        total = scope.simplifier.number(loop.upper - begin)
        if not isinstance(total, Const):
            return None
        first, step = loop.lower, loop.step
        if scope.lanes > 1:
            step *= scope.lanes
            first = begin + Var(THREAD) * form.coefficient(worker)
        with scope.ranged({}):
            trips = -(-total.value // step)
            number = first + Var(STEP) * step
            with scope.ranged({STEP: (0, trips - 1)}):
                guard = scope.simplifier.condition(number - begin < total)
                inner: tuple[Stmt, ...] = bind(loop.body, {loop.var: number})
                if guard != TRUE:
                    inner = (If(guard, inner),)
                before, scope.lanes = scope.lanes, 1
                scope.loops += trips > 1
                lines = list(self.body(inner))
                scope.loops -= trips > 1
                scope.lanes = before
        note = [f"// {in_comment(loop.note)}"] if loop.note else []
        if trips == 1:
            return [*note, *lines]
        pragma = self._unrolled(loop, trips, trips if trips <= MOST_UNROLLED else 4)
        head = loop_head("int", scope.spell(STEP), trips)
        return [*note, pragma, f"{head} {{", *(INDENT + line for line in lines), "}"]

    def _plain(self, loop: For, path: Path | None) -> Iterator[str]:
        scope = self.scope
        extent = scope.simplifier.number(loop.upper - loop.lower)
        comment = f"  // {in_comment(loop.note)}" if loop.note else ""
        var = scope.names.local(loop.var)
        counted = loop.step == 1 and scope.simplifier.number(loop.lower) == Const(0)
        phases = any(isinstance(s, For) and s.kind in WORKERS for s in statements(loop.body))
        waits = any(isinstance(s, BarrierWait) for s in statements(loop.body))
        if isinstance(extent, Const) and (counted or not phases):
            trips = max(0, -(-extent.value // loop.step))
            lower = scope.simplifier.number(loop.lower)
            place: Int = Var(loop.var) if counted else lower + Var(loop.var) * loop.step
            body = loop.body if counted else bind(loop.body, {loop.var: place})
            if trips == 0:
                return
            with scope.ranged({loop.var: (0, trips - 1)}):
                if trips == 1:
                    yield from self.body(body, path)
                    return
                joined = joined_load(scope, loop, trips) if loop.kind == "unrolled" and counted else None
                if joined is not None:
                    yield from self._joined(var, trips, *joined)
                    return
                copied = any(isinstance(s, WaitCopies) for s in statements(loop.body))
                early = Early(frozenset(scope.ranges)) if waits or copied else scope.early
                around = scope.rings.around(loop.var, frozenset(scope.ranges), phases or waits)
                with around as ring, scope.beginning(early):
                    inner = list(self.inside(body, path))
                if early is not None and early is not scope.early:
                    inner[:0] = [INDENT + line for line in early.lines]
            if not inner:
                return
            yield from self._turning(ring)
            straight = not waits and _straight(loop.body) and not self._counted(loop.body)
            most = self._most_issued()
            short = straight and trips * _issues(loop.body) <= most
            if loop.kind == "unrolled" or short:
                yield self._whole(loop, trips) if loop.kind == "unrolled" else self._unrolled(loop, trips, trips)
            elif straight and (many := most // max(1, _issues(loop.body))) > 1 and not phases:
                yield self._unrolled(loop, trips, 1 << (min(many, trips).bit_length() - 1))
            elif phases or waits or self._counted(loop.body):
                yield "#pragma unroll 1"
            yield f"{loop_head('int', var, trips)} {{{comment}"
            yield from inner
            yield from ring.advance()
            yield "}"
            return
        lower_text, upper_text = scope.index.number(loop.lower), scope.index.number(loop.upper, 5)
        ranges = {loop.var: loop_range(loop.lower, loop.upper, loop.step, scope.ranges)}
        around = scope.rings.around(loop.var, frozenset(scope.ranges), counted and (phases or waits))
        with scope.ranged(ranges), around as ring, scope.beginning(None):
            inner = list(self.inside(loop.body, path))
        if inner:
            yield from self._turning(ring)
            if waits:
                yield workarounds.ROLLED_PRODUCTS.text
            yield f"{loop_head('int', var, upper_text, lower_text, loop.step)} {{{comment}"
            yield from inner
            yield from ring.advance()
            yield "}"

    @workarounds.FEW_UNROLLED
    def _most_issued(self) -> int:
        return LONE if self.scope.alone else MOST_ISSUED

    @workarounds.PART_UNROLLED
    def _whole(self, loop: For, trips: int) -> str:
        """A loop that is to be unrolled: on a team's registers, which take several elements a trip, some trips at a
        time."""
        part = trips > MOST_UNROLLED and self._counted(loop.body) and not self._numbers(loop)
        return f"#pragma unroll {MOST_UNROLLED // 2}" if part else "#pragma unroll"

    def _unrolled(self, loop: For, trips: int, many: int) -> str:
        """How far the compiler unrolls a loop: it may be told to leave it where registers are limited, unless the
        loop's variable says which of them are meant."""
        plain = "#pragma unroll" if many == trips else f"#pragma unroll {many}"
        return f"#pragma unroll UNROLL({many})" if self.scope.limited and not self._numbers(loop) else plain

    def _numbers(self, loop: For) -> bool:
        """Whether registers are told apart by a loop's variable."""
        layouts = self.scope.layouts
        return any(name in layouts and loop.var in used for name, used in _touched(loop.body))

    def _turning(self, ring: Ring) -> Iterator[str]:
        """Declarations of what goes round with a loop."""
        for (first, size), name in ring.names.items():
            yield f"int {name} = {self.scope.index.number(first % size)};"

    def _counted(self, body: tuple[Stmt, ...]) -> bool:
        """Whether a row of the space says how many chunks of a team's registers are under way."""
        buffers = self.scope.kernel.buffers
        return any(isinstance(s, Assign) and buffers[s.buffer].elements_per_thread for s in statements(body))

    @staticmethod
    def _joined(var: str, trips: int, call: str, many: int) -> Iterator[str]:
        """A loop of which `many` trips are one call."""
        if trips == many:
            yield call
            return
        yield "#pragma unroll"
        yield f"{loop_head('int', var, trips // many)} {{"
        yield INDENT + call
        yield "}"

    # -- instructions --------------------------------------------------------------------------------------------------

    def _call(self, stmt: IntrinsicCall) -> Iterator[str]:
        scope, intrinsic = self.scope, stmt.intrinsic
        if any(ref.descriptor is not None for ref in stmt.operands.values()):
            yield self.engine.call(stmt)
            return
        operands = [*(o for o in intrinsic.operands.values() if o.written)]
        operands += [o for o in intrinsic.operands.values() if not o.written]
        texts = []
        for operand in operands:
            ref = stmt.operands[operand.name]
            texts.append(scope.array(scope.layouts[ref.buffer], (*ref.index, Const(0))))
        opaque = [o.name for o in intrinsic.operands.values() if o.opaque is not None and not o.written]
        majors = tuple(scope.majors.get(stmt.operands[o].buffer, "row") for o in opaque)
        yield f"{scope.used.issue(intrinsic, majors)}({', '.join(texts)});"


def _touched(body: tuple[Stmt, ...]) -> Iterator[tuple[str, frozenset[str]]]:
    """Buffers that a body touches, each with the variables of where."""
    for stmt in statements(body):
        for name, index in places(stmt):
            yield name, frozenset().union(*(free_vars(i) for i in index if isinstance(i, Int)))


def _issues(body: tuple[Stmt, ...]) -> int:
    """Instructions of one run of a body, its unrolled loops counted out."""
    total = 0
    for stmt in body:
        inside = sum(_issues(inner) for inner in bodies(stmt))
        if isinstance(stmt, For) and isinstance(stmt.lower, Const) and isinstance(stmt.upper, Const):
            inside *= stmt.upper.value - stmt.lower.value
        match stmt:
            case IntrinsicCall(intrinsic) if intrinsic.scope == "thread":
                inside = intrinsic.accumulator.elements
            case IntrinsicCall() | Assign():
                inside = 1
        total += inside
    return total


def _straight(body: tuple[Stmt, ...]) -> bool:
    """Whether a body issues instructions or copies without loops of many trips."""
    return not any(isinstance(s, For) and s.kind == "serial" for s in statements(body))


def narrowed(condition: Bool, ranges: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int] | None]:
    """Bounds of variables where the condition holds, of those that it bounds by a number."""
    found: dict[str, tuple[int, int] | None] = {}
    for part in conjuncts(condition):
        match part:
            case Compare("<", Var(name), Const(value)) if name in ranges:
                found[name] = ranges[name][0], min(ranges[name][1], value - 1)
    return found
