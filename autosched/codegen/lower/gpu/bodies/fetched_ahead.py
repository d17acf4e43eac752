"""Slices of the next iteration, fetched while this one computes: shared memory has two of each, which take turns.

    for j_block:                                  K_shared[0] = … of the first iteration, if there is one
        for warp: K_shared[…] = K[j_block, …]     for j_block:
        for warp: … K_shared[…] …              →      for warp: wait
                                                      for warp: K_shared[1 - turn] = K[j_block + 1, …], if there is one
                                                      for warp: … K_shared[turn] …

All threads wait once an iteration: what they have copied is there then, and nobody reads the other slice any more.

With `products`, the first product of an iteration is issued while the one before computes rows: its slices are fetched
two iterations ahead, into the place of those that it has read.

    K_shared[0], V_shared[0] = …; wait; K_shared[1] = …; begin: S <- Q K_shared[0]
    for j_block:
        wait for copies and calls; S_held = S
        K_shared[turn] = K[j_block + 2, …]; V_shared[1 - turn] = V[j_block + 1, …]
        begin: S <- Q K_shared[1 - turn], if there is one
        … rows of S_held …; A <- … V_shared[turn]

With `last`, the first product of the next iteration is issued behind the rows, beside this one's last, and both are
waited for where the next iteration begins: the first one's sums need no registers of their own while rows are computed.

    … S <- Q K_shared[0]; acc = A
    for j_block:
        wait for copies and calls; A = acc; S_held = S
        K_shared[turn] = K[j_block + 2, …]; V_shared[1 - turn] = V[j_block + 1, …]
        … rows of S_held and A …; acc = A
        begin: S <- Q K_shared[1 - turn] (in the last iteration once more of what was there: no branch)
        begin: acc <- … V_shared[turn]
    wait for calls; A = acc

With `late`, workers do not wait for each other where they are: each says that it has come, and waits until all others
have begun the iteration before. So one may compute rows while another's products run. Slices are fetched one iteration
earlier, and take turns in four places: no worker reads the place that is filled, however far apart two of them are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.gpu.bodies.kept_slices import copied
from autosched.codegen.lower.gpu.bodies.products_ahead import FirstProduct, LastProduct, written
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import (
    WORKERS,
    Assign,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    BarrierWait,
    For,
    If,
    IntrinsicCall,
    RegisterRef,
    Stmt,
    WaitCalls,
    WaitCopies,
    WorkerBarrier,
    bodies,
    with_bodies,
)
from autosched.codegen.tree.uses import used_buffers
from autosched.ir.value import Read, Value, map_value, walk
from autosched.logic import TRUE, Bool, Const, Int, Var, minimum

Body = tuple[Stmt, ...]
STAGES, LATE_STAGES = 2, 4
"""Of slices: that of this iteration and the next; with `late`, one more, and the one that the last worker may read."""
SLOTS = 2
"""Of a barrier at which workers arrive for one iteration while others still wait for the one before."""


@dataclass(frozen=True)
class AheadOfLoop:
    """What stands around a loop whose slices are fetched ahead: `begun` fetches those of the first iteration, `issued`
    those after it, and issues its first product; `body` fetches those of iterations to come; `ended` stands behind the
    loop."""

    begun: Body
    issued: Body
    body: Body
    ended: Body = ()


def fetched_ahead(
    body: Body, loop: For, ctx: Context, products: bool = False, last: bool = False, late: bool = False
) -> AheadOfLoop:
    """Slices that phases of the block's workers fill whole, of memory that the body does not write, fetched ahead."""
    fills = [s for s in body if isinstance(s, For) and _fills_shared(s, body, ctx)]
    if not fills:
        return AheadOfLoop((), (), body)
    shared = {n for f in fills for n in written((f,))}
    others = [s for s in body if not any(s is f for f in fills)]
    stages = LATE_STAGES if late else STAGES
    for name in shared:
        old = ctx.buffers[name]
        ctx.buffers[name] = replace(old, shape=(stages, *old.shape))
    changed, here = written(others), Var(loop.var)
    number = here - loop.lower
    reach = 2 if late else 1  # iterations from a fetch to the one that needs it

    def fetch(some: Sequence[For], at: Int) -> Body:
        place = (at - loop.lower) % stages
        return _together([_copies(f, shared, place, {loop.var: at}, ctx) for f in some], at < loop.upper)

    def computed(stmts: Sequence[Stmt]) -> Body:
        return tuple(_alone(_staged(s, shared, number % stages, ctx), shared, changed, ctx) for s in stmts)

    landed = tuple(replace(f, body=(WaitCopies(0), *_fences(some))) for f, some in _by_workers(fills).items())
    meet = _late(landed, number, ctx) if late else landed
    first = FirstProduct.of(others) if products else None
    results, rest = (first.results, first.rest) if first else ((), others)
    read = used_buffers((first.calls,)) if first else frozenset[str]()
    twice = [f for f in fills if read & written((f,))]
    once = [f for f in fills if not read & written((f,))]
    waited = (replace(first.calls, body=(WaitCalls(0),), no_barrier=True),) if first else ()

    def ahead(at: Int) -> Body:
        """The fetches of an iteration."""
        return (*fetch(twice, at + reach + 1), *fetch(once, at + reach))

    def issue(at: Int, always: bool = False) -> Body:
        if first is None:
            return ()
        (moved,) = bind((_staged(first.calls, shared, number % stages, ctx),), {loop.var: at})
        assert isinstance(moved, For)
        calls = moved.body if always else (If(at < loop.upper, moved.body),)
        return (replace(moved, body=calls, no_barrier=True),)

    fetches = ahead(here)
    if late:
        fetches = tuple(replace(f, no_barrier=True) for f in fetches if isinstance(f, For))
    begun = (*fetch(twice, loop.lower), *(s for n in range(reach, 1, -1) for s in ahead(loop.lower - n)))
    before, ended = issue(loop.lower), tuple[Stmt, ...]()
    if final := LastProduct.of(rest, loop.var) if first and last else None:
        kept = computed((final.results,))
        body = (*waited, *kept, *meet, *computed(results), *fetches, *computed((*final.before, final.starts)))
        calls = _of_workers(final.calls, ctx)
        body = (*body, *issue(minimum(here + 1, loop.upper - 1), always=True), *computed((calls,)))
        before, ended = (*computed((final.starts,)), *before), (*waited, *kept)
    else:
        body = (*waited, *meet, *computed(results), *fetches, *issue(here + 1), *computed(rest))
    if not begun and first is None:
        return AheadOfLoop(ahead(loop.lower - 1), (), body)
    return AheadOfLoop(begun, (*landed, *ahead(loop.lower - 1), *before), body, ended)


def _late(landed: Sequence[For], number: Int, ctx: Context) -> Body:
    """Each worker says that it has come to the iteration of this number, and waits until all have come to the one
    before: their copies have landed, and they read nothing of earlier ones any more."""
    barrier, before = ctx.barrier("come", SLOTS), number + 1
    here = tuple(replace(p, body=(*p.body, WorkerBarrier()), no_barrier=True) for p in landed)
    passed = before // SLOTS
    arrive = BarrierArrive(barrier, number % SLOTS, own=True)
    return (*here, arrive, BarrierWait(barrier, before % SLOTS, passed, passed - 1))


def _fills_shared(workers: For, body: Body, ctx: Context) -> bool:
    """Whether a phase of workers copies memory that the body does not write to shared memory, which nothing else fills,
    and no more."""
    if workers.kind not in WORKERS:
        return False
    found = copied(workers.body, ctx)
    if found is None:
        return False
    filled, read = found
    elsewhere = {n for s in body if s is not workers for n in written((s,))}
    return not (filled & elsewhere or read & (elsewhere | filled))


def _fences(phases: Sequence[For]) -> Body:
    """What shows instructions that read shared memory by themselves what has been copied, where a phase does so."""
    return tuple(s for phase in phases for s in phase.body if isinstance(s, AsyncProxyFence))[:1]


def _copies(fill: For, shared: set[str], stage: Int, at: Mapping[str, Int], ctx: Context) -> For:
    """A phase that starts the copies of one slice."""
    (moved,) = bind((fill,), at)
    moved = _staged(moved, shared, stage, ctx)
    assert isinstance(moved, For)
    copies = tuple(s for s in moved.body if not isinstance(s, AsyncProxyFence))
    return replace(moved, body=(AsyncCopies(copies, "", Const(0)),))


def _by_workers(phases: Sequence[For]) -> dict[For, list[For]]:
    """The phases of the same workers together, by one loop over these."""
    found: dict[For, list[For]] = {}
    for phase in phases:
        found.setdefault(replace(phase, body=(), note=""), []).append(phase)
    return found


def _together(phases: Sequence[For], condition: Bool) -> Body:
    """Phases of the same workers as one, under a condition."""
    made = []
    for workers, some in _by_workers(phases).items():
        body = tuple(s for p in some for s in p.body)
        made.append(replace(workers, body=body if condition == TRUE else (If(condition, body),)))
    return tuple(made)


def _staged(stmt: Stmt, shared: set[str], stage: Int, ctx: Context) -> Stmt:
    """A statement on one stage of the slices."""

    def read(value: Value) -> Value:
        if isinstance(value, Read) and value.tensor in shared:
            return replace(value, index=(stage, *value.index))
        return value

    match stmt:
        case Assign():
            index = (stage, *stmt.index) if stmt.buffer in shared else stmt.index
            return replace(stmt, index=index, value=map_value(stmt.value, read))
        case IntrinsicCall():
            return replace(stmt, operands={o: _placed(r, shared, stage, ctx) for o, r in stmt.operands.items()})
        case _:
            return with_bodies(stmt, lambda inner: tuple(_staged(s, shared, stage, ctx) for s in inner)) or stmt


def _of_workers(phase: For, ctx: Context) -> For:
    """A phase whose calls run on behind it: each worker has registers of its own that it fills for them."""
    assert isinstance(phase.upper, Const)
    filled = written((phase,))
    for name in filled:
        ctx.buffers[name] = replace(ctx.buffers[name], shape=(phase.upper.value, *ctx.buffers[name].shape))
    return replace(phase, body=tuple(_staged(s, filled, Var(phase.var), ctx) for s in phase.body))


def _placed(ref: RegisterRef, shared: set[str], stage: Int, ctx: Context) -> RegisterRef:
    if ref.buffer not in shared:
        return ref
    place = ref.descriptor
    if place is not None:
        slices = ctx.buffers[ref.buffer]
        place = replace(place, start=stage * (slices.elements // slices.shape[0]) + place.start)
    return replace(ref, index=(stage, *ref.index), descriptor=place)


def _alone(stmt: Stmt, shared: set[str], changed: set[str], ctx: Context) -> Stmt:
    """A phase that touches no common memory which the body changes but these slices waits for nobody."""
    if not (isinstance(stmt, For) and stmt.kind in WORKERS):
        return stmt
    common = {n for n in _buffers(stmt) if ctx.buffers[n].scope not in ("register", "local")} - shared
    return stmt if common & changed else replace(stmt, no_barrier=True)


def _buffers(stmt: Stmt) -> Iterator[str]:
    match stmt:
        case Assign():
            yield stmt.buffer
            yield from (n.tensor for n in walk(stmt.value) if isinstance(n, Read))
        case IntrinsicCall():
            yield from (r.buffer for r in stmt.operands.values())
    for inner in bodies(stmt):
        for inside in inner:
            yield from _buffers(inside)
