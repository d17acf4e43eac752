"""Lowering of a team whose threads have several results each, along axes that some operand does not move with.

for block: warp for warp:
  for each value of the outer terms:  X_now = X[…], W_now = W[…]     what several results share once
                                      acc[j] += X_now… * W_now…      for each result j of the thread
  Y[…] = acc[j]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, product
from math import prod

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.gpu_scalar.team import (
    BLOCK,
    WARP,
    Team,
    TeamRegisters,
    blocks,
    in_slot,
    kept,
    unflattened,
    warps,
    with_formulas,
)
from autosched.codegen.lower.scalar.reduction import identity
from autosched.codegen.lower.scalar.shape import guard_formula
from autosched.codegen.tree.kernel import Assign, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.codegen.tree.update import accumulated, chosen, combine, write
from autosched.ir.nodes import Axis, Stage
from autosched.ir.value import Literal, Read, Value, reads
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, free_vars
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import lane_elements, lies_inside

Place = tuple[int, ...]


def lower_per_thread(part: WarpCooperativePart, ctx: Context, team: Team) -> Stmt:
    """One grid; all terms of a sum are written out."""
    return _Apiece(with_formulas(part), ctx, team).summed()


@dataclass
class _Apiece:
    """One part under one row of its space. `held` says which register has an element, by where it was loaded."""

    part: WarpCooperativePart
    ctx: Context
    team: Team
    held: dict[tuple[Read, Bool], Read] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registers = TeamRegisters(self.ctx, self.team.rows, self.team)
        self.places: list[Place] = list(product(*(range(count) for _, count in self.team.each)))
        self.extent = lane_elements(self.part) // prod(count for _, count in self.team.each)
        for member in self.part.members:
            for read in (member.target, *all_reads(member)):
                self.ctx.tensor(read.tensor)
        team, counts = self.team, dict(self.team.each)
        first = BLOCK * team.rows + WARP if team.rows > 1 else BLOCK
        self.element = first * team.width + Var(LANE)
        self.inside = self.element < self.extent if self.extent % (team.width * team.rows) else TRUE
        spatial = self.part.members[0].spatial
        fewer = [Axis(a.name, Const(0), Const(a.extent // counts.get(n, 1))) for n, a in enumerate(spatial)]
        found = unflattened(fewer, self.element)
        self.numbers = [found[a.name] for a in spatial]

    def at(self, member: Stage, place: Place) -> dict[str, Int]:
        """Where one of the thread's results is along a member's axes."""
        own = {n: (count, p) for (n, count), p in zip(self.team.each, place, strict=True)}
        found: dict[str, Int] = {}
        for n, axis in enumerate(member.spatial):
            count, p = own.get(n, (1, 0))
            found[axis.name] = self.numbers[n] * count + p + axis.lower
        return found

    def summed(self) -> Stmt:
        """The grid: sums of each thread's results, and what follows from them."""
        stage, lane = self.part.members[0], self.registers.lane
        dtype, op = stage.assign.value.dtype, "+=" if stage.assign.op == "-=" else stage.assign.op
        acc = self.registers.declare(f"{stage.assign.tensor}_acc", dtype, len(self.places))
        body = self.each(lambda _: [write(acc, Literal(identity(op, dtype), dtype), lane)])
        ranges = [range(a.extent) for a in stage.reduction]
        for _, terms in groupby(product(*ranges), lambda term: term[:-1]):
            work: list[Stmt] = []
            for term in terms:
                work += self.each(partial(self.added, stage, op, acc, term))
            body += [*self.registers.taken(), *work]
        for number, p in enumerate(self.places):
            body += in_slot(self.finished(op, acc, p), Const(0), Const(number))
        count = -(-self.extent // (self.team.width * self.team.rows))
        return blocks(count, 1, [warps(self.team.rows, body)], "results")

    def each(self, made: Callable[[Place], list[Stmt]]) -> list[Stmt]:
        """What is done for each of the thread's results, in its register."""
        return [s for n, p in enumerate(self.places) for s in in_slot(made(p), Const(0), Const(n))]

    def added(self, stage: Stage, op: str, acc: Read, term: Place, p: Place) -> list[Stmt]:
        """One term of one result."""
        at = self.at(stage, p) | {a.name: a.lower + t for a, t in zip(stage.reduction, term, strict=True)}
        present = guard_formula(stage, at)
        value = self.fetched(stage, at, all_of(self.inside, present))
        return [write(acc, chosen(present, accumulated(op, acc, value, self.part.fused), acc), self.registers.lane)]

    def fetched(self, stage: Stage, at: Mapping[str, Int], valid: Bool) -> Value:
        """A term's value, what it reads along the lanes from registers. An element that lies in its tensor whatever
        guards say is there for all results."""
        always = {r.tensor for r in reads(stage.assign.value)} - self.guarded(stage)

        def swap(read: Read) -> Value:
            used = frozenset[str]().union(*(free_vars(i) for i in read.index if isinstance(i, Int)))
            if LANE not in used:
                return read
            where = self.inside if read.tensor in always else valid
            if (read, where) not in self.held:
                register = self.registers.declare(f"{read.tensor}_now", read.dtype)
                index = tuple(i for i in register.index if isinstance(i, Int))
                self.registers.loads.append(Assign(register.tensor, index, read, self.registers.lane, where))
                self.held[read, where] = register
            return self.held[read, where]

        return place(stage.assign.value, at, swap)

    def guarded(self, stage: Stage) -> set[str]:
        """Tensors of which the stage's loops without its guards would name elements that are not there."""
        program = self.ctx.program
        return {r.tensor for r in reads(stage.assign.value) if not lies_inside(program, stage, r)}

    def finished(self, op: str, acc: Read, p: Place) -> list[Stmt]:
        """What becomes of one result: its initial value, what follows on it, and stores."""
        registers, (stage, *others) = self.registers, self.part.members
        at, assign, dtype = self.at(stage, p), stage.assign, stage.assign.value.dtype
        assert stage.init is not None
        registers.known = {}
        start = registers.fetched(stage.init, at, 0, self.inside)
        stmts: list[Stmt] = [*registers.taken()]
        if not (isinstance(start, Literal) and start.value == identity(op, dtype) and assign.op == op):
            stmts.append(write(acc, combine(assign.op, start, acc), registers.lane))
        index = place_index(assign.index, at)
        registers.known = {Read(assign.tensor, index, dtype): acc}
        after: list[Stmt] = []
        for member in others:
            after += registers.made(self.part, member, self.at(member, p), self.inside)
        stmts += registers.taken()
        if kept(self.ctx.program, self.part, stage):
            stmts.append(Assign(assign.tensor, index, acc, registers.lane, self.inside))
        return [*stmts, *after]
