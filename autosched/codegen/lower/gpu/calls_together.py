"""Calls of a loop that run on as one group: the registers that each takes are filled before, all at once.

    for pu in range(4):                       for pu in range(4): a_reg[pu] = …
        a_reg = …                             begin:
        begin: acc <- wgmma(a=a_reg, …)   →       for pu in range(4): acc <- wgmma(a=a_reg[pu], …)
        wait for all calls                    wait for all calls

A register that a call reads may not be filled anew before the call has ended: with one for each call they follow each
other without a wait.
"""

from __future__ import annotations

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
from autosched.ir.value import Read, walk
from autosched.logic import Const, Int, Var

Body = tuple[Stmt, ...]
MOST_CALLS = 16
"""Of a group, whose registers are filled before."""


def calls_together(body: Body, ctx: Context) -> Body:
    """The statements, with the calls of each loop of constant length as one group where nothing but registers that it
    fills stands between them."""

    def visit(stmt: Stmt) -> Body:
        made = with_bodies(stmt, within) or stmt  # loops inside first
        together = _together(made, ctx) if isinstance(made, For) else None
        return (made,) if together is None else together

    def within(inside: Body) -> Body:
        return tuple(s for stmt in inside for s in visit(stmt))

    return within(body)


def _together(loop: For, ctx: Context) -> Body | None:
    """A loop over calls as fills, calls and one wait; None where it is no such loop."""
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
    for name in names:
        old = ctx.buffers[name]
        ctx.buffers[name] = replace(old, shape=(trips, *old.shape))
    before = tuple(replace(s, index=(turn, *s.index)) for s in filled)
    inside = replace(loop, body=tuple(_placed(s, names, turn) for s in group.body), kind="unrolled")
    first = (replace(loop, body=before, kind="unrolled"),) if before else ()
    return (*first, AsyncCalls((inside,)), wait)


def _placed(stmt: Stmt, names: set[str], turn: Int) -> Stmt:
    """A statement whose calls take the registers of one turn."""

    def placed(ref: RegisterRef) -> RegisterRef:
        return replace(ref, index=(turn, *ref.index)) if ref.buffer in names else ref

    if isinstance(stmt, IntrinsicCall):
        return replace(stmt, operands={o: placed(r) for o, r in stmt.operands.items()})
    return with_bodies(stmt, lambda inner: tuple(_placed(s, names, turn) for s in inner)) or stmt
