"""Lowering of tile loops: the loops of the program, and in them the statements of a plan of their body.

The body is lowered as the program of its own that it is. Then each window becomes the part of the tensor that it stands
for, and what the body keeps for itself becomes memory of each thread's own. What the body prepares of windows that come
again is prepared outside the loops that do not move these, for each iteration of those that do:

    for b:
        for j_block: K_panel[j_block] = …       asked for inside j_block, of data that i_tile does not change
        for i_tile:
            for j_block: …

Inside of the loops the body stands behind the choice of its slices. What is prepared before the run is prepared of all
slices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCalls,
    AsyncCopies,
    Branch,
    Buffer,
    Chosen,
    For,
    Function,
    If,
    IntrinsicCall,
    Prefetch,
    RegisterRef,
    Stmt,
)
from autosched.codegen.tree.uses import used_variables
from autosched.ir.value import Read, Value, map_value, reads
from autosched.logic import Const, Int, Var
from autosched.logic.walk import free_vars, substitute_bool, substitute_int
from autosched.tiling.analysis.windows import TensorWindow
from autosched.tiling.plans.plan import Part, TileLoop, TileLoopsPart
from autosched.tiling.steps.common.tile_loops import THREADS

LowerPart = Callable[[Part, Context], tuple[Stmt, ...]]


def lower_tile_loops(part: TileLoopsPart, ctx: Context, lower_part: LowerPart) -> tuple[Stmt, ...]:
    """The loops, outermost first, around the body's statements; the loop that is shared takes a thread's part."""
    threads = THREADS.of(part.names, ctx.values)
    inner = replace(ctx, program=part.member.program, buffers={}, prepare=[], barriers={})
    for name in part.windows:
        inner.tensor(name)
    body = tuple(s for p in part.member.parts for s in lower_part(p, inner))
    lowering = _TileLoops(part, ctx, inner, threads)
    before = lowering.prepared()
    body = choosing(part, lowering.at, lowering.moved.of(body), {t.axis.name for t in part.loops})
    for depth in reversed(range(len(part.loops))):
        body = (lowering.loop(part.loops[depth], (*before[depth + 1], *body)),)
    body = (*before[0], *body)
    if threads == 1 or part.shared is None:
        return body
    note = f"threads share {part.shared.axis.name}"
    return (For("thread", Const(0), Const(threads), body, "parallel", note=note),)


def choosing(
    part: TileLoopsPart, at: Mapping[str, Int], body: tuple[Stmt, ...], around: Collection[str]
) -> tuple[Stmt, ...]:
    """The body inside of what chooses slices in these loops, those first on which others depend; `at`: where the loops'
    variables and the chosen numbers are."""
    for c in reversed([c for c in part.chosen if c.moved_by <= set(around)]):
        value = map_value(c.value, on_int=lambda i: substitute_int(i, at), on_bool=lambda b: substitute_bool(b, at))
        body = (Chosen(identifier(c.name), value, c.extent, body),)
    return body


@dataclass(frozen=True)
class Mover:
    """A loop around, or a slice that data choose: from `first` to `last`."""

    name: str
    first: int
    last: int


class _TileLoops:
    """What the loops of one part make of the statements inside."""

    def __init__(self, part: TileLoopsPart, ctx: Context, inner: Context, threads: int) -> None:
        self.part, self.ctx, self.inner, self.threads = part, ctx, inner, threads
        names = [*(t.axis.name for t in part.loops), *(c.name for c in part.chosen)]
        self.at: dict[str, Int] = {name: Var(identifier(name)) for name in names}
        for read in (r for c in part.chosen for r in reads(c.value)):
            ctx.tensor(read.tensor)
        self.fixed = {f.buffers[-1] for f in inner.prepare if all(map(self.known, f.buffers[:-1]))}
        """Buffers that are filled once, before the run: from data that are known then."""
        self.moving: dict[str, tuple[Mover, ...]] = {}
        for function in inner.prepare:
            *sources, made = function.buffers
            found = {m.name: m for s in sources for m in self.movers(s, made in self.fixed)}
            found |= {m.name: m for m in self.named(used_variables(function.body))}
            self.moving[made] = tuple(found[n] for n in names if n in found)
        self.moved = Moved({n: self.place(b) for n, b in inner.buffers.items()}, self.at)

    def movers(self, buffer: str, fixed: bool) -> Iterator[Mover]:
        """What moves a window, or what was prepared of one. Before the run nobody knows which slices the data choose:
        all of them are prepared then, else those of the loops that choose them."""
        if buffer in self.moving:
            yield from self.moving[buffer]
        if buffer not in self.part.windows:
            return
        window = self.part.windows[buffer]
        if fixed:
            yield from self.named(frozenset(n for i in window.start for n in free_vars(i)))
        else:
            yield from (Mover(t.axis.name, t.first, t.last) for t in self.part.moving(window))

    def named(self, used: frozenset[str]) -> Iterator[Mover]:
        """What moves sizes that statements name: a loop whose length depends on the tile, a condition on its rows."""
        yield from (Mover(t.axis.name, t.first, t.last) for t in self.part.loops if t.axis.name in used)
        yield from (Mover(c.name, 0, c.extent - 1) for c in self.part.chosen if c.name in used)

    def known(self, buffer: str) -> bool:
        """Whether its elements are known before the run."""
        window = self.part.windows.get(buffer)
        if window is not None:
            return self.ctx.program.known(window.tensor)
        return all(self.known(s) for f in self.inner.prepare if f.buffers[-1] == buffer for s in f.buffers[:-1])

    def whole(self, mover: Mover, body: tuple[Stmt, ...]) -> For:
        """A loop over all that a loop of the part, or a slice, is anywhere."""
        return For(identifier(mover.name), Const(mover.first), Const(mover.last + 1), body)

    def loop(self, loop: TileLoop, body: tuple[Stmt, ...]) -> For:
        """A loop of the part, or a thread's share of it."""
        lower, upper = (substitute_int(bound, self.at) for bound in (loop.axis.lower, loop.axis.upper))
        if self.threads > 1 and loop is self.part.shared:
            thread, n = Var("thread"), loop.axis.extent
            lower, upper = lower + thread * n // self.threads, lower + (thread + 1) * n // self.threads
        return For(identifier(loop.axis.name), lower, upper, body)

    def stays_inside(self, moving: Sequence[Mover]) -> int:
        """How many of the outer loops stay around what these move."""
        names = {m.name for m in moving}
        return next((k for k, t in enumerate(self.part.loops) if t.axis.name not in names), len(self.part.loops))

    def again(self, made: str) -> tuple[Mover, ...]:
        """Of what moves a prepared buffer, that for which it has an element each: not the loops that stay around."""
        moving = self.moving[made]
        if made in self.fixed:
            return moving
        around = {t.axis.name for t in self.part.loops[: self.stays_inside(moving)]}
        return tuple(m for m in moving if m.name not in around)

    def place(self, buffer: Buffer) -> BufferPlace:
        """Where a buffer of the body lies in the kernel."""
        ctx, name = self.ctx, buffer.name
        if name in self.part.windows:
            window = self.part.windows[name]
            ctx.tensor(window.tensor)
            start = tuple(self.outside(i) for i in window.start)
            return BufferPlace(window.tensor, window=replace(window, start=start))
        scope, owners, shape = buffer.scope, list[Int](), list[int]()
        if name in self.moving:
            scope = "packed" if name in self.fixed else "workspace"
            for mover in self.again(name):
                owners.append(self.at[mover.name])
                shape.append(mover.last + 1)
        if self.threads > 1 and scope == "workspace":
            owners, shape = [Var("thread"), *owners], [self.threads, *shape]
        origin = self.origin(buffer.origin or name) if buffer.origin or scope == "packed" else None
        new = ctx.declare(name, buffer.dtype, (*shape, *buffer.shape), scope, origin, buffer.elements_per_thread)
        ctx.buffers[new.name] = replace(new, matrices=buffer.matrices, first=buffer.first)
        return BufferPlace(new.name, tuple(owners))

    def origin(self, name: str) -> str | None:
        """The program's tensor that a buffer of the body holds or re-lays; of what the body prepares, what that is made
        of first."""
        if name in self.part.windows:
            return self.part.windows[name].tensor
        sources = (s for f in self.inner.prepare if f.buffers[-1] == name for s in f.buffers[:-1])
        found = (o for s in sources if (o := self.origin(s)) is not None)
        return next(found, name if name in self.ctx.program.tensors else None)

    def outside(self, index: Int) -> Int:
        return substitute_int(index, self.at)

    def prepared(self) -> list[tuple[Stmt, ...]]:
        """What is prepared inside so many of the loops, outside the others."""
        before: list[tuple[Stmt, ...]] = [() for _ in range(len(self.part.loops) + 1)]
        for function in self.inner.prepare:
            made = function.buffers[-1]
            body, fixed = self.moved.of(function.body), made in self.fixed
            if not fixed:
                body = choosing(self.part, self.at, body, {m.name for m in self.moving[made]})
            for mover in reversed(self.again(made)):
                body = (self.whole(mover, body),)
            if not fixed:
                depth = self.stays_inside(self.moving[made])
                before[depth] = (*before[depth], *body)
                continue
            name = self.moved.places[made].buffer
            sources = tuple(self.moved.places[n].buffer for n in function.buffers[:-1])
            self.ctx.prepare.append(Function(f"prepare_{name}", (*sources, name), body))
        return before


@dataclass(frozen=True)
class BufferPlace:
    """Where a buffer of the body lies: in `buffer`, behind subscripts of its owners, or as a window of it."""

    buffer: str
    owners: tuple[Int, ...] = ()
    window: TensorWindow | None = None

    def index(self, index: Sequence[Int]) -> tuple[Int, ...]:
        return (*self.owners, *index) if self.window is None else self.window.place(index)


@dataclass(frozen=True)
class Moved:
    """Statements of the body with its buffers where they lie, and its unknown sizes by the loops' variables."""

    places: Mapping[str, BufferPlace]
    at: Mapping[str, Int]

    def of(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(self._statement, body))

    def _statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                lower, upper = substitute_int(stmt.lower, self.at), substitute_int(stmt.upper, self.at)
                return replace(stmt, lower=lower, upper=upper, body=self.of(stmt.body))
            case If():
                return replace(stmt, condition=substitute_bool(stmt.condition, self.at), body=self.of(stmt.body))
            case AsyncCopies(boxes=()) | AsyncCalls():
                return replace(stmt, body=self.of(stmt.body))
            case Branch():
                return replace(stmt, condition=self._value(stmt.condition), body=self.of(stmt.body))
            case Chosen():
                return replace(stmt, value=self._value(stmt.value), body=self.of(stmt.body))
            case Assign():
                place = self.places[stmt.buffer]
                index = place.index([substitute_int(i, self.at) for i in stmt.index])
                valid = substitute_bool(stmt.valid, self.at)
                return replace(stmt, buffer=place.buffer, index=index, value=self._value(stmt.value), valid=valid)
            case IntrinsicCall():
                return replace(stmt, operands={n: self._register(ref) for n, ref in stmt.operands.items()})
            case Prefetch():
                place = self.places[stmt.buffer]
                return replace(stmt, buffer=place.buffer, index=place.index(stmt.index))
            case _:
                return stmt

    def _register(self, ref: RegisterRef) -> RegisterRef:
        place = self.places[ref.buffer]
        return replace(ref, buffer=place.buffer, index=place.index(ref.index))

    def _value(self, value: Value) -> Value:
        to = self.at
        return map_value(value, self._read, lambda i: substitute_int(i, to), lambda b: substitute_bool(b, to))

    def _read(self, value: Value) -> Value:
        if not isinstance(value, Read):
            return value
        place = self.places[value.tensor]
        # A subscript by data is of a dimension along which the window begins at 0: it stays as it is.
        by_data = {f" {d}": i for d, i in enumerate(value.index) if not isinstance(i, Int)}
        known = place.index([i if isinstance(i, Int) else Var(f" {d}") for d, i in enumerate(value.index)])
        index = tuple(by_data.get(i.name, i) if isinstance(i, Var) else i for i in known)
        return replace(value, tensor=place.buffer, index=index)
