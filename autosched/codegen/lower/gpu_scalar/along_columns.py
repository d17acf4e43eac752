"""Lowering of a team whose lanes lie along results: every lane has results of its own, neighbours in memory.

Without a sum each warp computes some chunks of all results. A sum's terms are shared out among the warps of a block
(and among blocks), whose results are then added up in shared memory (and by a second grid).

for block: warp for warp:  for chunk:  X_now = X[terms of the warp, lanes];  acc += X_now …;  parts[warp] = acc
warp for warp:             if warp == 0:  acc += parts[1] …;  Y[lanes] = acc
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.gpu_scalar.per_thread_results import lower_per_thread
from autosched.codegen.lower.gpu_scalar.smem_transpose import lower_transposed
from autosched.codegen.lower.gpu_scalar.team import (
    BLOCK,
    CHUNK,
    SHARE,
    WARP,
    Team,
    TeamRegisters,
    blocks,
    flattened,
    in_slot,
    kept,
    under,
    unflattened,
    warps,
    with_formulas,
)
from autosched.codegen.lower.scalar.reduction import identity
from autosched.codegen.lower.scalar.shape import guard_formula
from autosched.codegen.tree.kernel import Assign, For, Stmt
from autosched.codegen.tree.rename import place_index
from autosched.codegen.tree.update import accumulated, chosen, combine, write
from autosched.ir.nodes import Axis, Stage
from autosched.ir.value import Literal, Read
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, conjuncts, free_vars
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import elements, lane_elements
from autosched.tiling.steps.scalar import handles
from autosched.tiling.steps.scalar.team_transpose import team_transpose

OTHER = Var("other")
MOST_WARPS, MOST_UNDER_WAY = 8, 8
"""How the second grid adds up shares."""
FEW_STEPS = 16
"""Terms of a warp, at most, that are expanded."""


def lower_column_team(part: WarpCooperativePart, ctx: Context, team: Team) -> tuple[Stmt, ...]:
    """One grid; two where blocks share the sums."""
    tile = handles.TILE.of(part.names, ctx.values)
    if tile and (found := team_transpose(part)) is not None:
        return lower_transposed(part, ctx, team, tile, found)
    part = with_formulas(part)
    stage = part.members[0]
    if not stage.reduction:
        return (Columns(part, ctx, team).filled(),)
    if team.each:
        return (lower_per_thread(part, ctx, team),)
    if team.split == 1:
        return (Columns(part, ctx, team).summed(),)
    dtype = stage.assign.value.dtype
    shape = (team.split, lane_elements(part))
    partial = ctx.declare(f"{stage.assign.tensor}_shares", dtype, shape, "workspace").name
    share = Axis("share", Const(0), Const(team.split))
    term = Read(partial, (Var(share.name), flattened(stage.spatial)), dtype)
    after = replace(stage, axes=(*stage.spatial, share), guards=(), assign=replace(stage.assign, value=term))
    rest = replace(part, members=(after, *part.members[1:]), fused=False)
    some = min(MOST_WARPS, 1 << (team.split.bit_length() - 1))
    few = Team(team.lanes, min(4, team.vector), min(MOST_UNDER_WAY, -(-team.split // some)), some)
    return (Columns(part, ctx, team).summed(partial), Columns(rest, ctx, few).summed())


class Columns:
    """One part under one row of its space."""

    def __init__(self, part: WarpCooperativePart, ctx: Context, team: Team) -> None:
        self.part, self.ctx, self.team = part, ctx, team
        self.registers = TeamRegisters(ctx, team.warps * team.rows, team)
        self.extent = lane_elements(part)
        for member in part.members:
            for read in (member.target, *all_reads(member)):
                ctx.tensor(read.tensor)

    # -- without a sum ------------------------------------------------------------------------------------------------

    def filled(self) -> Stmt:
        """Every warp some chunks, all its reads under way before the first is used."""
        team, chunk = self.team, self.team.warps * self.team.width
        element = (CHUNK * team.warps + WARP) * team.width + Var(LANE)
        each = chunk * team.unroll
        inside = element < self.extent if self.extent % each else TRUE
        work = self.made(self.part.members, element, inside, team.unroll)
        loads = self.registers.taken()
        body: list[Stmt] = []
        for stmts in (loads, work):
            for u in range(team.unroll):
                number = BLOCK * team.unroll + u if team.unroll > 1 else BLOCK
                body += in_slot(stmts, number, Const(u))
        return blocks(-(-self.extent // each), 1, [warps(team.warps, body)], "elements")

    def made(self, members: Sequence[Stage], element: Int, valid: Bool, slots: int) -> list[Stmt]:
        """What elementwise members leave at an element."""
        stmts: list[Stmt] = []
        for member in members:
            stmts += self.registers.made(self.part, member, unflattened(member.spatial, element), valid, slots)
        return stmts

    # -- with one -----------------------------------------------------------------------------------------------------

    def summed(self, partial: str | None = None) -> Stmt:
        """Sums of a block's lanes, and what follows from them; `partial` takes them where blocks share the terms."""
        team, registers, (stage, *others) = self.team, self.registers, self.part.members
        assign, dtype, lane = stage.assign, stage.assign.value.dtype, registers.lane
        op = "+=" if assign.op == "-=" else assign.op
        first = BLOCK * team.rows + WARP if team.rows > 1 else BLOCK  # of warps that have results of their own
        element = first * team.width + Var(LANE)
        inside = element < self.extent if self.extent % (team.width * team.rows) else TRUE
        acc = registers.declare(f"{assign.tensor}_acc", dtype)
        body: list[Stmt] = [write(acc, Literal(identity(op, dtype), dtype), lane)]
        body += self.terms(stage, op, acc, element, inside)
        phases = [body]
        if team.warps > 1:
            shape = (team.warps, team.width)
            parts = self.ctx.declare(f"{assign.tensor}_parts", dtype, shape, "shared").name
            body.append(Assign(parts, (WARP, Var(LANE)), acc, lane))
            phases.append(self.gathered(parts, op, acc))
        last = phases[-1] if team.warps == 1 else []
        if partial is not None:
            last.append(Assign(partial, (SHARE, element), acc, lane, inside))
        else:
            at = unflattened(stage.spatial, element)
            assert stage.init is not None
            start = registers.fetched(stage.init, at, 0, inside)
            before = registers.taken()
            if not (isinstance(start, Literal) and start.value == identity(op, dtype) and assign.op == op):
                before.append(write(acc, combine(assign.op, start, acc), lane))
            index = place_index(assign.index, at)
            registers.known[Read(assign.tensor, index, dtype)] = acc
            after = self.made(others, element, inside, 0)
            last += [*before, *registers.taken()]
            if kept(self.ctx.program, self.part, stage):
                last.append(Assign(assign.tensor, index, acc, lane, inside))
            last += after
        if team.warps > 1:
            phases[-1] = under(WARP.eq(0), [*phases[-1], *last])
        count = -(-self.extent // (team.width * team.rows))
        shares = team.split if partial is not None else 1
        return blocks(count, shares, [warps(team.warps * team.rows, p) for p in phases], "results")

    def terms(self, stage: Stage, op: str, acc: Read, element: Int, inside: Bool) -> list[Stmt]:
        """All terms of a warp: every so many, several under way at a time."""
        team, registers, total = self.team, self.registers, elements(stage.reduction)
        together = team.warps * team.split
        unroll = min(team.unroll, -(-total // together))
        steps = -(-total // (together * unroll)) * unroll
        first: Int = SHARE * (steps * team.warps) if team.split > 1 else Const(0)
        number = first + (CHUNK * team.warps + WARP if team.warps > 1 else CHUNK)
        at = unflattened(stage.spatial, element) | unflattened(stage.reduction, number)
        some = number < total if steps * together != total else TRUE
        present = all_of(some, guard_formula(stage, at))
        moving = frozenset({str(CHUNK), str(WARP)})
        value = registers.fetched(stage.assign.value, at, unroll, all_of(inside, present), moving)
        # What all lanes read is there wherever the term is, as far as that does not depend on the lane.
        common = all_of(*(c for c in conjuncts(present) if LANE not in free_vars(c)))
        loads = [load if load.lane is not None else replace(load, valid=common) for load in registers.taken()]
        registers.known.clear()
        new = accumulated(op, acc, value, self.part.fused)
        work = [write(acc, chosen(present, new, acc), registers.lane)]
        body = [s for stmts in (loads, work) for u in range(unroll) for s in in_slot(stmts, CHUNK + u, Const(u))]
        kind = "unrolled" if steps <= FEW_STEPS else "serial"  # where each term lies is then a constant
        return [For(str(CHUNK), Const(0), Const(steps), tuple(body), kind, unroll)]

    def gathered(self, parts: str, op: str, acc: Read) -> list[Stmt]:
        """The first warp's lanes add up what all warps have."""
        got = self.registers.declare(f"{parts}_now", acc.dtype)
        lane = self.registers.lane
        body: tuple[Stmt, ...] = (
            write(got, Read(parts, (OTHER, Var(LANE)), acc.dtype), lane),
            write(acc, combine(op, acc, got), lane),
        )
        return [For(str(OTHER), Const(1), Const(self.team.warps), body, "unrolled")]
