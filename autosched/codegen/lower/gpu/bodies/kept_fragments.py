"""Fragments that a loop does not change: filled once in front of it, and kept in registers over all its iterations.

    for j_block:                                  for warp, pu:
        for warp, pu:                                 Q_kept[warp, pu, e] = Q[i_tile * 64 + …, pu * 16 + …]
            a_reg[e] = Q[i_tile * 64 + …, pu * …]  →  for j_block:
            acc <- mma(a=a_reg, …)                    for warp, pu:
                                                          acc <- mma(a=Q_kept[warp, pu], …)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import (
    WORKERS,
    Assign,
    For,
    IntrinsicCall,
    RegisterRef,
    Stmt,
    statements,
    with_bodies,
)
from autosched.ir.value import Read, is_plain, walk
from autosched.logic import Const, Int, Var, free_vars

Body = tuple[Stmt, ...]


def kept_fragments(body: Body, loop: str, ctx: Context) -> tuple[Body, Body]:
    """What fills fragments in front of the loop over `loop`, and the loop's body without."""
    before: list[Stmt] = []
    written = {s.buffer for s in statements(body) if isinstance(s, Assign)}
    for fill in _fills(body, (), loop, written):
        if not _only_called(body, fill.stmt.buffer):
            continue
        kept = fill.declared(ctx)
        before.append(fill.once(kept))
        body = _replaced(body, fill, kept)
    return tuple(before), body


@dataclass(frozen=True)
class _Fill:
    """An assignment that fills fragments, the loops that number them, outermost first, and the workers' around."""

    stmt: Assign
    loops: tuple[For, ...]
    workers: For

    def declared(self, ctx: Context) -> str:
        """Registers of each worker: one fragment for each iteration of the loops."""
        (read,) = (n for n in walk(self.stmt.value) if isinstance(n, Read))
        old, (count, *counts) = ctx.buffers[self.stmt.buffer], map(_trips, (self.workers, *self.loops))
        origin = ctx.buffers[read.tensor].origin or read.tensor
        return ctx.declare(f"{origin}_kept", old.dtype, (count, *counts, *old.shape), "register").name

    @property
    def at(self) -> tuple[Int, ...]:
        """Which of the kept fragments an iteration of the loops takes."""
        numbers = ((Var(f.var) - f.lower, f.step) for f in self.loops)
        return (Var(self.workers.var), *(place // step if step > 1 else place for place, step in numbers))

    def once(self, kept: str) -> Stmt:
        """The loops around the assignment to the kept registers."""
        made: Stmt = replace(self.stmt, buffer=kept, index=(*self.at, *self.stmt.index))
        for loop in reversed(self.loops):
            made = replace(loop, body=(made,), kind="unrolled")
        return replace(self.workers, body=(made,))


def _fills(body: Body, around: tuple[For, ...], loop: str, written: set[str]) -> Iterator[_Fill]:
    """Assignments of whole fragments from memory that neither the loop nor anything in it changes."""
    for stmt in body:
        match stmt:
            case For():
                yield from _fills(stmt.body, (*around, stmt), loop, written)
            case Assign(lane=lane, value=Read() as read) if lane is not None and is_plain(read.index):
                workers = [f for f in around if f.kind in WORKERS]
                outside = {f.var for f in around[: around.index(workers[0])]} if workers else set[str]()
                used = {v for i in (*read.index, *stmt.index) if isinstance(i, Int) for v in free_vars(i)}
                used |= free_vars(stmt.valid)
                loops = tuple(f for f in around if f.var in used and f.kind not in WORKERS)
                known = all(isinstance(b, Const) for f in loops for b in (f.lower, f.upper))
                steady = loop not in used and not outside & used and read.tensor not in written
                if steady and len(workers) == 1 and known:
                    yield _Fill(stmt, loops, workers[0])


def _only_called(body: Body, register: str) -> bool:
    """Whether a register is filled in one place, and instructions alone read it."""
    fills = reads = 0
    for stmt in statements(body):
        if isinstance(stmt, Assign):
            fills += stmt.buffer == register
            reads += sum(isinstance(n, Read) and n.tensor == register for n in walk(stmt.value))
    called = any(
        isinstance(s, IntrinsicCall) and any(r.buffer == register for r in s.operands.values())
        for s in statements(body)
    )
    return fills == 1 and reads == 0 and called


def _replaced(body: Body, fill: _Fill, kept: str) -> Body:
    """The body without the assignment, its calls on the kept registers; loops that number these are unrolled."""
    numbering = {f.var for f in fill.loops}

    def visit(stmt: Stmt) -> Body:
        match stmt:
            case Assign() if stmt is fill.stmt:
                return ()
            case IntrinsicCall():
                return (replace(stmt, operands={o: placed(ref) for o, ref in stmt.operands.items()}),)
            case For(kind="serial", var=var) if var in numbering and _calls(stmt.body, fill.stmt.buffer):
                return (replace(stmt, body=within(stmt.body), kind="unrolled"),)
            case _:
                return (with_bodies(stmt, within) or stmt,)

    def placed(ref: RegisterRef) -> RegisterRef:
        if ref.buffer != fill.stmt.buffer:
            return ref
        return replace(ref, buffer=kept, index=(*fill.at, *ref.index))

    def within(inside: Body) -> Body:
        return tuple(s for stmt in inside for s in visit(stmt))

    return within(body)


def _calls(body: Body, register: str) -> bool:
    found = (s for s in statements(body) if isinstance(s, IntrinsicCall))
    return any(r.buffer == register for s in found for r in s.operands.values())


def _trips(loop: For) -> int:
    assert isinstance(loop.lower, Const)
    assert isinstance(loop.upper, Const)
    return -(-(loop.upper.value - loop.lower.value) // loop.step)


def flattened(body: Body) -> Body:
    """The body without loops of one iteration, but for those over workers."""
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For(kind=kind, lower=lower, upper=upper) if kind not in WORKERS and lower + 1 == upper:
                made += flattened(bind(stmt.body, {stmt.var: lower}))
            case For():
                made.append(replace(stmt, body=flattened(stmt.body)))
            case _:
                made.append(stmt)
    return tuple(made)
