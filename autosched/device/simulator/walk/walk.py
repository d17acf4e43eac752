"""A kernel's loop tree as flat facts: how often everything runs, which memory it touches, which loops are around it.

Bounds and branches may depend on outer loops: `places` has how often each class of places runs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from autosched.codegen.analysis.access import LaneAccess as Pattern
from autosched.codegen.analysis.access import classify
from autosched.codegen.analysis.barriers import Path as Place
from autosched.codegen.analysis.barriers import Phases
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
    Kernel,
    Lane,
    Prefetch,
    Stmt,
    StoreFence,
    TileCopy,
    WaitCalls,
    WaitCopies,
    WarpSpecialize,
    WorkerBarrier,
)
from autosched.codegen.tree.kernel import statements as all_statements
from autosched.codegen.tree.uses import places as places_in
from autosched.device.simulator.walk.facts import Facts, Fetch, Issue, Level, Stop, Touch, Work
from autosched.device.simulator.walk.loop_classes import LoopClasses, questions
from autosched.ir.value import Arith, Call, Index, Read, Select, Unary, reads, walk
from autosched.logic import TRUE, And, Binary, Const, Int, Var, free_vars
from autosched.machine.rate_names import FUNCTIONS
from autosched.tiling.plans.units import operation_of

ASYNC = "async"
"""The kind of the level around copies that run on; its `step` is how many of them may be under way."""
MEMORY = ("global", "workspace", "packed", "shared", "local", "state")


def facts(kernel: Kernel, stmt: Stmt) -> Facts:
    """What one top-level statement of the kernel's main function does."""
    walker = _Walker(kernel, stmt)
    walker.visit((stmt,), (), LoopClasses())
    statements = sum(t.runs for t in walker.stores) + sum(i.runs for i in walker.issues)
    names = frozenset(walker.buffers)
    lists = tuple(walker.touches), tuple(walker.issues), tuple(walker.works)
    return Facts(*lists, statements, names, frozenset(walker.owned), *walker.beside())


class _Walker:
    def __init__(self, kernel: Kernel, stmt: Stmt) -> None:
        self.kernel = kernel
        grid = any(isinstance(s, For) and s.kind in WORKERS for s in all_statements((stmt,)))
        self.barriers: set[Place] = Phases(kernel, (stmt,)).needed if grid else set()
        self.asked = questions(stmt)
        self.engine = False
        self.fetches: list[Fetch] = []
        self.stops: list[Stop] = []
        self.apart: set[int] = set()
        self.loops = 0
        self.touches: list[Touch] = []
        self.issues: list[Issue] = []
        self.works: list[Work] = []
        self.stores: list[Work] = []
        self.buffers: set[str] = set()
        self.owned: set[str] = set()
        self.places: dict[tuple[str, tuple[Int, ...], Lane | None], tuple[int, Pattern]] = {}
        self.statements = 0
        waits = [s.pending for s in all_statements(kernel.main.body) if isinstance(s, WaitCopies)]
        self.pending = max(waits, default=0) + 1

    def beside(self) -> tuple[tuple[Fetch, ...], tuple[Stop, ...], frozenset[int]]:
        return tuple(self.fetches), tuple(self.stops), frozenset(self.apart)

    def visit(self, body: tuple[Stmt, ...], path: tuple[Level, ...], at: LoopClasses, where: Place = ()) -> None:
        """`at` is where the loops around stand, and how often; `where` the body stands, as `Phases` says it."""
        if most := at.where_most():  # loops stand where the body runs most
            path = tuple([level.standing(most.get(level.var, level.value)) for level in path])
        often = at.often
        for number, stmt in enumerate(body):
            self.statements += 1
            here = (*where, number)
            match stmt:
                case For():
                    self._loop(stmt, path, at, here)
                case If(condition, inner):
                    if (kept := at.where(condition)) is not None:
                        self.visit(inner, path, kept, here)
                case Branch():
                    pass  # what the data ask for seldom
                case Chosen(var, _, extent, inner):  # one place stands for all
                    for name, index in places_in(stmt):
                        self._touch(name, index, None, False, path, often)
                    self.loops += 1
                    there = Const(extent // 2)
                    level = Level(self.loops, var, "serial", there, there + 1, 1, 1.0, often, extent // 2)
                    chosen = LoopClasses(at.runs, {**at.values, var: extent // 2})
                    self.visit(inner, (*path, level), chosen, here)
                case GuardedDispatch(checks, inner):  # the time of a kernel is that of data for which its checks hold
                    for name in checks:
                        self._touch(name, (Const(0),), None, False, path, often)
                    self.visit(inner, path, at, (*here, 0))
                case Assign():
                    self._assign(stmt, path, often)
                case IntrinsicCall():
                    accumulator = stmt.operands[stmt.intrinsic.accumulator.name]
                    self.buffers.update(ref.buffer for ref in stmt.operands.values())
                    own = {n for i in accumulator.index for n in free_vars(i)}
                    if any(level.kind in WORKERS and level.var in own for level in path):
                        self.owned.add(accumulator.buffer)
                    turns = [level.trips for level in path if level.kind == "unrolled" and level.var in own]
                    counts = often, float(np.prod(turns or [1.0])) * self._numbered(accumulator.buffer)
                    into = accumulator.buffer, max((turns_of(i) for i in accumulator.index), default=1)
                    described = [o for o in stmt.intrinsic.inputs if stmt.operands[o.name].descriptor is not None]
                    size = sum(o.elements * o.dtype.bits / 8 for o in described)
                    self.issues.append(Issue(stmt.intrinsic, path, *counts, self.statements, *into, size))
                    for operand in stmt.intrinsic.held:
                        ref, lane = stmt.operands[operand.name], Lane("element", operand.elements)
                        self._touch(ref.buffer, (*ref.index, Var(lane.var)), lane, False, path, often)
                case Prefetch():
                    self.works.append(Work(1, 0, 1, path, often, False, self.statements))
                case AsyncCopies():  # a loop of one trip, so that what runs ahead can be told from what is waited for
                    self.loops += 1
                    name, stages = f"async {self.loops}", max(turns_of(stmt.slot), self.pending)
                    mark = Level(self.loops, name, ASYNC, Const(0), Const(1), stages, 1.0, often, 0)
                    inside = at.fixed(name)
                    self.engine = bool(stmt.boxes)
                    self.visit(stmt.body, (*path, mark), inside, here)
                    self.engine = False
                    self.visit(stmt.boxes, (*path, mark), inside, here)
                case TileCopy(of):
                    rows = of.elements // of.box[0], of.box[0] * self.kernel.buffers[of.buffer].dtype.bits / 8
                    self.fetches.append(Fetch(*rows, stmt.blocks, stmt.store, path, often, self.statements))
                case WarpSpecialize():
                    for count, part in enumerate(stmt.bodies):
                        calls, stops, loops = len(self.issues), len(self.stops), self.loops
                        self.visit(part, path, at, (*here, count))
                        if len(self.issues) == calls:  # who only fetches waits beside those who compute
                            del self.stops[stops:]
                            self.apart |= set(range(loops + 1, self.loops + 1))
                case AsyncCalls():
                    self.visit(stmt.body, path, at, here)
                case WaitCalls(0):
                    self.stops.append(Stop(True, path, often, self.statements))
                case BarrierWait():
                    self.stops.append(Stop(False, path, often, self.statements))
                case WaitCopies() | WaitCalls() | AsyncProxyFence() | WorkerBarrier() | BarrierArrive() | StoreFence():
                    pass
                case Configure() | Comment():
                    pass

    def _loop(self, loop: For, path: tuple[Level, ...], at: LoopClasses, where: Place) -> None:
        inside = at.inside(loop, self.asked.get(id(loop), ()), len(path))
        if inside is None:
            return
        runs = inside.often
        self.loops += 1
        level = Level(
            self.loops,
            loop.var,
            loop.kind,
            loop.lower,
            loop.upper,
            loop.step,
            runs / at.often,
            runs,
            inside.value(loop.var),
            where in self.barriers,
        )
        self.visit(loop.body, (*path, level), inside, where)

    def _numbered(self, buffer: str) -> float:
        """Registers of a buffer that are named by number and not by loops."""
        of = self.kernel.buffers[buffer]
        return of.elements / of.shape[-1] if of.scope == "matrix" else 1.0

    def _assign(self, stmt: Assign, path: tuple[Level, ...], runs: float) -> None:
        buffers = self.kernel.buffers
        width = stmt.lane.width if stmt.lane else 1
        nodes = list(walk(stmt.value))
        single = buffers[stmt.buffer].scope == "register" and not isinstance(stmt.value, Read)
        named = (stmt.buffer, *(r.tensor for r in reads(stmt.value)))
        moved = [m.rows_of(b.shape[-1], b.dtype) for b in map(buffers.__getitem__, named) if (m := b.matrices)]
        rows = moved[0] if moved else 0
        for node in nodes:
            if isinstance(node, Read):
                self._touch(node.tensor, node.index, stmt.lane, False, path, runs, single, rows)
        self._touch(stmt.buffer, stmt.index, stmt.lane, True, path, runs, rows=rows)
        operations = sum(isinstance(n, Arith | Call | Unary | Select) for n in nodes)
        calls = sum(isinstance(n, Call) and n.function in FUNCTIONS for n in nodes)
        chained = buffers[stmt.buffer].scope == "register" and any(
            isinstance(n, Read) and n.tensor == stmt.buffer and n.index == stmt.index for n in nodes
        )
        here = self.statements, stmt.buffer
        if buffers[stmt.buffer].scope == "register":
            used = {n for i in stmt.index for n in free_vars(i)}
            if any(level.kind in WORKERS and level.var in used for level in path):
                self.owned.add(stmt.buffer)
        self.stores.append(Work(0, 0, width, path, runs, False, *here))
        if stmt.valid != TRUE:
            tests = len(stmt.valid.parts) if isinstance(stmt.valid, And) else 1
            each = width if stmt.lane is not None and stmt.lane.var in free_vars(stmt.valid) else 1
            self.works.append(Work(tests, 0, each, path, runs, False, *here))
        if operations:
            kinds = Counter(kind for n in nodes if (kind := operation_of(n)) is not None)
            listed = tuple((*kind, count) for kind, count in kinds.items())
            self.works.append(Work(operations, calls, width, path, runs, chained, *here, listed))

    def _touch(
        self,
        buffer: str,
        index: tuple[Index, ...],
        lane: Lane | None,
        write: bool,
        path: tuple[Level, ...],
        runs: float,
        single: bool = False,
        rows: int = 0,
    ) -> None:
        self.buffers.add(buffer)
        if self.kernel.buffers[buffer].scope not in MEMORY:
            return
        known = tuple(i if isinstance(i, Int) else Const(0) for i in index)  # data-dependent: see `reuse`
        of = self.kernel.buffers[buffer]
        place, pattern = self.places.get((buffer, known, lane), (len(self.places), None))
        if pattern is None:
            pattern = classify(known, of.shape, lane)
            self.places[buffer, known, lane] = place, pattern
        size = of.dtype.bits / 8
        self.touches.append(
            Touch(
                place, buffer, of.scope, size, known, lane, pattern, write, path, runs, self.statements, self.engine,
                single, rows,
            )
        )  # fmt: skip


def turns_of(index: Int) -> int:
    """How many places a loop takes turns at: `n` of `… % n` in a slot's index, 1 where there is none."""
    match index:
        case Binary("%", _, Const(n)):
            return n
        case Binary(_, left, right):
            return max(turns_of(left), turns_of(right))
        case _:
            return 1
