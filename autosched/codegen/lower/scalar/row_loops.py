"""Lowering of rows: the loops that scalar stages share, once, and inside them each stage's own, for several rows."""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.scalar.next_row import next_row
from autosched.codegen.lower.scalar.producer_fusion import FusedProducer, fusible
from autosched.codegen.lower.scalar.reduction import Reduction
from autosched.codegen.lower.scalar.row_buffer import row_buffer
from autosched.codegen.lower.scalar.scalar import ScalarLoops
from autosched.codegen.lower.scalar.scalar_stage import ScalarStage
from autosched.codegen.lower.scalar.shape import THREAD, Ats, shape_of, shared_out
from autosched.codegen.tree.kernel import For, Stmt, StoreFence
from autosched.logic import Const, Int, Var
from autosched.tiling.plans.plan import FusedLoopsPart
from autosched.tiling.steps.scalar import handles


def lower_rows(part: FusedLoopsPart, ctx: Context) -> tuple[Stmt, ...]:
    """The shared loops, the outermost among threads; `rows` iterations of the innermost at once, then one at a time."""
    by_name = {a.name: a for a in part.members[0].stage.axes}
    outer, inner = [by_name[n] for n in part.shared[:-1]], by_name[part.shared[-1]]
    threads, rows = handles.THREADS.of(part.names, ctx.values), handles.ROWS.of(part.names, ctx.values)
    passes = Passes(part, ctx)
    behind = (StoreFence(),) if passes.past is not None else ()
    at: dict[str, Int] = {n: Var(identifier(n)) for n in part.shared}
    var = at[inner.name]
    shared: Int = Var(THREAD) if threads > 1 else Const(0)
    assert isinstance(inner.lower, Const)
    low, whole = inner.lower.value, inner.extent // rows * rows
    body: list[Stmt] = []
    if whole:
        body_ = passes.of(tuple(at | {inner.name: var + r} for r in range(rows)), shared)
        loop = For(identifier(inner.name), Const(low), Const(low + whole), body_, step=rows)
        body += (loop,) if outer else shared_out(loop, threads, behind)
    if whole < inner.extent:
        rest = passes.of((at,), shared if outer else Const(0))
        body.append(For(identifier(inner.name), Const(low + whole), Const(low + inner.extent), rest))
    for k, axis in reversed(list(enumerate(outer))):
        loop = For(identifier(axis.name), axis.lower, axis.upper, tuple(body))
        body = list(shared_out(loop, threads, behind) if k == 0 else (loop,))
    return (*body, *behind)


class Passes:
    """The stages of a part, one pass over the row after the other."""

    def __init__(self, part: FusedLoopsPart, ctx: Context) -> None:
        self.part = part
        self.members = [ScalarStage.of(m, ctx, replace(shape_of(m, ctx.values), threads=1)) for m in part.members]
        self.past = row_buffer(part, ctx, ctx.values)
        self.next = next_row(part, ctx)

    def of(self, ats: Ats, thread: Int) -> tuple[Stmt, ...]:
        """All passes for these rows."""
        result: list[Stmt] = []
        passes = self.passes()
        for number, (first, *more) in enumerate(passes):
            if more:
                stmts = fused_reduction(first, more[0], ats)
            else:
                stmts = ScalarLoops(first).loops(len(self.part.shared), ats, False)
            if self.past is not None:
                stmts = self.past.of(stmts, tuple(m.stage.name for m in (first, *more)), thread)
            if self.next is not None and number == min(1, len(passes) - 1):
                stmts = self.next.asked_by(stmts, (first, *more)[-1].axes[-1].name)
            result += stmts
        return tuple(result)

    def passes(self) -> list[list[ScalarStage]]:
        """The members, with each producer in one pass with the reduction that consumes it."""
        found: list[list[ScalarStage]] = []
        for member in self.members:
            before = found[-1] if found else []
            alone = len(before) == 1 and member.shape.across
            if alone and fusible(before[0].part, member.part, len(self.part.shared)):
                before.append(member)
            else:
                found.append([member])
        return found


def fused_reduction(producer: ScalarStage, summing: ScalarStage, ats: Ats) -> tuple[Stmt, ...]:
    """The reduction's loops, with the stage before it computed in them."""
    assert summing.part.across is not None
    before, inner = producer.hoist(producer.axes[-1], ats)
    tensor, dtype = producer.stage.assign.tensor, producer.stage.assign.value.dtype
    shape = (len(ats) * summing.shape.unroll, summing.shape.width)
    register = producer.ctx.declare(f"{tensor}_now", dtype, shape, "register").name
    fused = FusedProducer(inner, register, summing.part.across)
    return (*before, *Reduction(summing, (summing.axes[-1],), ats, False, fused).emit())
