"""Calls of a loop that run on as one group: the registers that each takes are filled before, all at once.

    for pu in range(4):                       for pu in range(4): a_reg_of_call[pu] = …
        a_reg = …                             begin:
        begin: acc <- wgmma(a=a_reg, …)   →       for pu in range(4): acc <- wgmma(a=a_reg_of_call[pu], …)
        wait for all calls                    wait for all calls

A register that a call reads may not be filled anew before the call has ended: with one for each call they follow each
other without a wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.tree.kernel import (
    WORKERS,
    Assign,
    AsyncCalls,
    For,
    IntrinsicCall,
    RegisterRef,
    Stmt,
    WaitCalls,
    statements,
    with_bodies,
)
from autosched.codegen.tree.uses import used_buffers
from autosched.ir.value import Read, walk
from autosched.logic import Const, Int, Var

Body = tuple[Stmt, ...]
MOST_CALLS = 16
"""Of a group, whose registers are filled before."""


def calls_together(body: Body, ctx: Context) -> Body:
    """The statements, with the calls of each loop of constant length as one group where nothing but registers that it
    fills stands between them."""

    replaced: set[str] = set()

    def visit(stmt: Stmt) -> Body:
        made = with_bodies(stmt, within) or stmt  # loops inside first
        together = _together(made, ctx, replaced) if isinstance(made, For) else None
        return (made,) if together is None else together

    def within(inside: Body) -> Body:
        return tuple(s for stmt in inside for s in visit(stmt))

    body = within(body)
    for name in replaced - used_buffers(body):
        del ctx.buffers[name]
    return body


def _together(loop: For, ctx: Context, replaced: set[str]) -> Body | None:
    """A loop over calls as fills, calls and one wait; None where it is no such loop. `replaced` gets the registers in
    whose place it has one for each call."""
    *fills, group, wait = loop.body if len(loop.body) > 1 else (None, None)
    if not isinstance(group, AsyncCalls) or wait != WaitCalls(0) or not all(isinstance(s, Assign) for s in fills):
        return None
    if loop.kind in WORKERS or not isinstance(loop.lower, Const) or not isinstance(loop.upper, Const):
        return None
    trips = -(-(loop.upper.value - loop.lower.value) // loop.step)
    calls = [s for s in statements(group.body) if isinstance(s, IntrinsicCall)]
    if not 1 < trips * len(calls) <= MOST_CALLS:
        return None
    sums = {c.operands[c.intrinsic.accumulator.name].buffer for c in calls}
    filled = [s for s in fills if isinstance(s, Assign)]
    names = {s.buffer for s in filled}
    read = {n.tensor for s in filled for n in walk(s.value) if isinstance(n, Read)}
    if read & (sums | names) or names & sums or any(ctx.buffers[n].scope != "register" for n in names):
        return None
    turn = (Var(loop.var) - loop.lower) // loop.step if loop.step > 1 else Var(loop.var) - loop.lower
    of_call: dict[str, str] = {}
    for name in sorted(names):
        old = ctx.buffers[name]
        of_call[name] = ctx.declare(f"{name}_of_call", old.dtype, (trips, *old.shape), "register", old.origin).name
    replaced |= names
    before = tuple(replace(s, buffer=of_call[s.buffer], index=(turn, *s.index)) for s in filled)
    inside = replace(loop, body=tuple(_placed(s, of_call, turn) for s in group.body), kind="unrolled")
    first = (replace(loop, body=before, kind="unrolled"),) if before else ()
    return (*first, AsyncCalls((inside,)), wait)


def _placed(stmt: Stmt, of_call: Mapping[str, str], turn: Int) -> Stmt:
    """A statement whose calls take the registers of one turn."""

    def placed(ref: RegisterRef) -> RegisterRef:
        own = of_call.get(ref.buffer)
        return ref if own is None else replace(ref, buffer=own, index=(turn, *ref.index))

    if isinstance(stmt, IntrinsicCall):
        return replace(stmt, operands={o: placed(r) for o, r in stmt.operands.items()})
    return with_bodies(stmt, lambda inner: tuple(_placed(s, of_call, turn) for s in inner)) or stmt
