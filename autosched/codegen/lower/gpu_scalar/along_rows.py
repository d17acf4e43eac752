"""Lowering of a team whose lanes lie along rows: each team of warps does a row, member after member.

for block: warp for warp:                      the row's number, the warp's place in it
  X_now = X[row, chunks of lanes]              kept for the members behind, or read again
  acc = max(acc, X_now)
  half of the lanes at a time; M_parts[warp] = M_row
warp for warp:                                 behind a barrier, where several warps have a row
  M_row = max of M_parts …
  S_acc += exp(X_now - M_row) …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.gpu_scalar.team import (
    BLOCK,
    CHUNK,
    SHARE,
    SLOT,
    WARP,
    Team,
    TeamRegisters,
    blocks,
    in_slot,
    kept,
    over_lanes,
    under,
    unflattened,
    warps,
    with_formulas,
)
from autosched.codegen.lower.scalar.quotient import with_reciprocals
from autosched.codegen.lower.scalar.reduction import identity
from autosched.codegen.lower.scalar.shape import guard_formula
from autosched.codegen.tree.kernel import Assign, For, Lane, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.codegen.tree.update import accumulated, chosen, combine, left_by, write
from autosched.ir.formula import apply_formulas
from autosched.ir.nodes import Axis, Stage
from autosched.ir.value import Literal, Read, Value, map_value
from autosched.ir.variables import value_vars
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, minimum
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import inner_axes, lane_elements, row_axes, team_rows
from autosched.tiling.steps.scalar.shared_along_row import kept_values
from autosched.tiling.steps.scalar.team_steps import lane_reads, shared_reads

Work = Callable[[Bool], Sequence[Stmt]]


def lower_row_team(part: WarpCooperativePart, ctx: Context, team: Team) -> tuple[Stmt, ...]:
    """One grid; two where blocks share a row's reduction."""
    formulas, kept = part.policy.formulas, kept_values(part) if team.hold else {}
    part = with_formulas(part)
    if team.split == 1:
        common = {n: tuple(apply_formulas(v, formulas) for v in values) for n, values in kept.items()}
        return (RowTeam(part, ctx, team, common=common).emit(),)
    stage = part.members[0]
    rows = row_axes(part, stage)
    shape = (*(a.extent for a in rows), team.split)
    partial = ctx.declare(f"{stage.assign.tensor}_shares", stage.assign.value.dtype, shape, "workspace").name
    share = Axis("share", Const(0), Const(team.split))
    index = (*(Var(a.name) - a.lower for a in rows), Var(share.name))
    term = Read(partial, index, stage.assign.value.dtype)
    assign = replace(stage.assign, value=term)
    first = RowTeam(replace(part, members=(stage,)), ctx, team, partial)
    after = replace(stage, axes=(*rows, share), guards=(), assign=assign)
    rest = replace(part, members=(after, *part.members[1:]), fused=False)
    few = Team(team.lanes, 1, 4, 1 if team.split <= 4 * team.lanes else 4)
    return (first.emit(), RowTeam(rest, ctx, few).emit())


class RowTeam:
    """One part under one row of its space; `partial` takes the place of the result where blocks share it; `common` are
    values of each member that are computed once for several."""

    def __init__(
        self,
        part: WarpCooperativePart,
        ctx: Context,
        team: Team,
        partial: str | None = None,
        common: Mapping[str, tuple[Value, ...]] = {},
    ) -> None:
        self.part, self.ctx, self.team, self.partial, self.common = part, ctx, team, partial, common
        self.workers = team.rows * team.warps
        self.registers = TeamRegisters(ctx, self.workers, team)
        self.axes = row_axes(part, part.members[0])
        self.total, self.extent = team_rows(part), lane_elements(part)
        row: Int = WARP // team.warps if team.warps > 1 else WARP
        self.row = BLOCK * team.rows + row if team.rows > 1 else BLOCK
        self.place: Int = Const(0) if team.warps == 1 else WARP % team.warps if team.rows > 1 else WARP
        self.chunk = team.warps * team.width
        self.chunks = -(-self.extent // self.chunk)
        self.element = (CHUNK * team.warps + self.place) * team.width + Var(LANE)
        self.slots = self.chunks if team.hold else team.unroll
        self.phases: list[list[Stmt]] = [[]]
        if team.hold:
            self.registers.passing = frozenset(r.tensor for r in lane_reads(part)) - set(shared_reads(part))
        self.computed: dict[Value, Read] = {}

    def emit(self) -> Stmt:
        for member in self.part.members:
            inner = inner_axes(self.part, member)
            at = unflattened(row_axes(self.part, member), self.row) | unflattened(inner, self.element)
            for read in (member.target, *all_reads(member)):
                self.ctx.tensor(read.tensor)
            if member.reduction:
                self.reduce(member, at)
            elif inner:
                self.fill(member, at)
            else:
                self.once(member, at)
        inside = self.row < self.total if self.total % self.team.rows else TRUE
        body = [warps(self.workers, under(inside, phase)) for phase in self.phases if phase]
        return blocks(-(-self.total // self.team.rows), self.team.split, body, "rows")

    def add(self, stmts: Sequence[Stmt]) -> None:
        self.phases[-1] += stmts

    # -- members ------------------------------------------------------------------------------------------------------

    def reduce(self, member: Stage, at: dict[str, Int]) -> None:
        """A row's sum: of a lane's elements, of the lanes, of the warps."""
        assign, dtype = member.assign, member.assign.value.dtype
        tensor, registers = assign.tensor, self.registers
        op = "+=" if assign.op == "-=" else assign.op
        acc = registers.declare(f"{tensor}_acc", dtype)
        self.add([write(acc, Literal(identity(op, dtype), dtype), registers.lane)])
        there = guard_formula(member, at)
        before, value = self.fetched(member, assign.value, at)

        def work(valid: Bool) -> Sequence[Stmt]:
            new = accumulated(op, acc, value, self.part.fused)
            return [*before, write(acc, chosen(all_of(valid, there), new, acc), registers.lane)]

        self.over_chunks(work)
        total = registers.declare(f"{tensor}_sum", dtype, vector=1)
        other = registers.declare(f"{tensor}_other", dtype, vector=1)
        mine: Value | None = None
        for n in range(self.team.vector):
            one = Read(acc.tensor, (WARP, Var(LANE) * self.team.vector + n), dtype)
            mine = one if mine is None else combine(op, mine, one)
        assert mine is not None
        result = registers.single(f"{tensor}_row", dtype)
        lane = Lane(LANE, self.team.lanes)
        everywhere = write(result, Read(total.tensor, (WARP, Const(0)), dtype))
        self.add(
            [write(total, mine, lane), *over_lanes(total, other, op, self.team.lanes, self.team.lanes), everywhere]
        )
        if self.team.warps > 1:
            parts = self.ctx.declare(f"{tensor}_parts", dtype, (self.workers,), "shared").name
            self.add([Assign(parts, (WARP,), result)])
            self.phases.append([])
            first = WARP // self.team.warps * self.team.warps if self.team.rows > 1 else Const(0)
            again = Read(parts, (first + Var(LANE) % self.team.warps,), dtype)
            self.add(
                [write(total, again, lane), *over_lanes(total, other, op, self.team.warps, self.team.lanes), everywhere]
            )
        if self.partial is not None:
            index = tuple(at[a.name] - a.lower for a in self.axes)
            self.add(self.by_one([Assign(self.partial, (*index, SHARE), result)]))
            return
        assert member.init is not None
        start = place(member.init, at, self.held)
        if not (isinstance(start, Literal) and start.value == identity(op, dtype) and assign.op == op):
            self.add([write(result, combine(assign.op, start, result))])
        self.leave(member, at, result)

    def once(self, member: Stage, at: dict[str, Int]) -> None:
        """A number of each row."""
        result = self.registers.single(f"{member.assign.tensor}_row", member.assign.value.dtype)
        self.add([write(result, place(left_by(member), at, self.held))])
        self.leave(member, at, result)

    def leave(self, member: Stage, at: dict[str, Int], result: Read) -> None:
        """The row's result, for members behind and for memory."""
        index = place_index(member.assign.index, at)
        self.registers.known[Read(member.assign.tensor, index, result.dtype)] = result
        if kept(self.ctx.program, self.part, member):
            self.add(self.by_one([Assign(member.assign.tensor, index, result)]))

    def fill(self, member: Stage, at: dict[str, Int]) -> None:
        """Elements along the row."""
        registers, tensor = self.registers, member.assign.tensor
        before, value = self.fetched(member, left_by(member), at)
        index = place_index(member.assign.index, at)
        target = Read(tensor, index, value.dtype)
        later = self.part.members[self.part.members.index(member) + 1 :]
        wanted = any(r.tensor == tensor for m in later for r in all_reads(m))
        held = registers.declare(f"{tensor}_made", value.dtype, self.slots) if wanted and self.team.hold else None
        stored = kept(self.ctx.program, self.part, member) or (wanted and held is None)

        def work(valid: Bool) -> Sequence[Stmt]:
            made: list[Stmt] = [*before, *([] if held is None else [write(held, value, registers.lane)])]
            if stored:
                made.append(Assign(tensor, index, value if held is None else held, registers.lane, valid))
            return made

        self.over_chunks(work)
        if held is not None:
            registers.known[target] = held

    # -- chunks of the row --------------------------------------------------------------------------------------------

    def fetched(self, member: Stage, value: Value, at: dict[str, Int]) -> tuple[list[Stmt], Value]:
        """The value at a lane, and what has to be computed before it; unless rows are held, everything is read anew."""
        registers = self.registers
        if not self.team.hold:
            registers.known = {r: k for r, k in registers.known.items() if len(k.index) == 2}
        there = guard_formula(member, at)
        before: list[Stmt] = []
        for part in self.common.get(member.name, ()):
            here = registers.fetched(part, at, self.slots, there)
            if here not in self.computed:
                self.computed[here] = registers.declare(f"{member.assign.tensor}_kept", here.dtype, self.slots)
                before.append(write(self.computed[here], here, registers.lane))
        placed = map_value(registers.fetched(value, at, self.slots, there), lambda v: self.computed.get(v, v))
        if not self.part.fused:
            return before, placed
        tensor = member.assign.tensor

        def once(what: str, of_row: Value) -> Value:
            register = registers.single(f"{tensor}_{what}", of_row.dtype)
            self.add([write(register, of_row)])
            return register

        def each(what: str, of_lane: Value) -> Value:
            register = registers.declare(f"{tensor}_{what}", of_lane.dtype)
            before.append(write(register, of_lane, registers.lane))
            return register

        return before, with_reciprocals(placed, self.of_row, once, each)

    @staticmethod
    def of_row(value: Value) -> bool:
        """Whether a value is the same for all of a row."""
        return not value_vars(value) & {LANE, str(CHUNK), str(SLOT)}

    def held(self, read: Read) -> Value:
        return self.registers.known.get(read, read)

    def over_chunks(self, work: Work) -> None:
        """Reads and work for all chunks of the row: whole ones, then a part of one."""
        loads = self.registers.taken()
        inside = self.element < self.extent
        partly = [replace(s, valid=all_of(inside, s.valid)) for s in loads]
        if self.team.split > 1:
            self.of_share(loads, partly, work, inside)
            return
        whole, unroll = self.extent // self.chunk, self.team.unroll
        if self.team.hold:
            now = [s for s in loads if len(s.index) == 2]  # what no later member reads
            now_partly = [s for s in partly if len(s.index) == 2]
            held, held_partly = ([s for s in some if len(s.index) > 2] for some in (loads, partly))
            for stmts, last in ((held, held_partly), ([*now, *work(TRUE)], [*now_partly, *work(inside)])):
                if stmts and whole:
                    self.add([For(str(CHUNK), Const(0), Const(whole), tuple(in_slot(stmts, CHUNK, CHUNK)), "unrolled")])
                if whole < self.chunks:
                    self.add(in_slot(last, Const(whole), Const(whole)))
            return
        many = whole // unroll * unroll
        if many:
            body = self.group(CHUNK, unroll, loads, work(TRUE))
            self.add([For(str(CHUNK), Const(0), Const(many), tuple(body), step=unroll)])
        self.add(self.group(Const(many), whole - many, loads, work(TRUE)))
        if whole < self.chunks:
            self.add(in_slot([*partly, *work(inside)], Const(whole), Const(0)))

    def of_share(self, loads: list[Assign], partly: list[Assign], work: Work, inside: Bool) -> None:
        """The same for a block's share of the chunks."""
        unroll = self.team.unroll
        each = -(-self.chunks // (self.team.split * unroll)) * unroll
        exact = self.extent % self.chunk == 0 and self.chunks == self.team.split * each
        body = self.group(CHUNK, unroll, loads if exact else partly, work(TRUE if exact else inside))
        first: Int = SHARE * each
        last = first + each if exact else minimum(first + each, -(-self.chunks // unroll) * unroll)
        self.add([For(str(CHUNK), first, last, tuple(body), step=unroll)])

    def group(self, first: Int, count: int, loads: Sequence[Stmt], work: Sequence[Stmt]) -> list[Stmt]:
        """So many chunks at once: all reads are under way before the first is used."""
        return [s for stmts in (loads, work) for u in range(count) for s in in_slot(stmts, first + u, Const(u))]

    def by_one(self, stmts: list[Stmt]) -> list[Stmt]:
        """Statements that one warp of a row does."""
        return under(self.place.eq(0) if self.team.warps > 1 else TRUE, stmts)
