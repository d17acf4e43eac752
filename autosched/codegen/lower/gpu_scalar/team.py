"""What teams of a GPU's threads have in common: how a row of their space lays them out, registers, reads along lanes.

A register of a warp has `vector` elements a thread, neighbours of which lie with one thread, so that they are read and
written at once. What a thread does between reading and writing is arithmetic on such registers; a sum over lanes goes
half of the lanes at a time, and over warps through shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.scalar.shape import guard_formula
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, For, If, Lane, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.codegen.tree.update import combine, left_by, write
from autosched.ir.dtypes import DType
from autosched.ir.formula import apply_formulas
from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Read, Value, reads
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, free_vars
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.step import Handle
from autosched.tiling.steps.scalar import handles
from autosched.tiling.steps.scalar.results_per_thread import apiece_axes, apiece_decision

WARP, BLOCK, CHUNK, SHARE = Var("warp"), Var("block"), Var("chunk"), Var("share")
"""Loops: a block's warps, blocks, what a team's lanes take at once (or a step of a serial sum), shares of a sum."""
SLOT = Var(".slot")
"""Which register holds the chunk; it is filled in when loops are made."""


@dataclass(frozen=True)
class Team:
    """The decisions of one row (`tiling.steps.scalar.team_steps`), and how many lanes a warp has."""

    lanes: int
    vector: int = 1
    unroll: int = 1
    warps: int = 1
    rows: int = 1
    hold: bool = False
    split: int = 1
    each: tuple[tuple[int, int], ...] = ()
    """Numbers of spatial axes along which a thread has several results, and how many."""

    @property
    def width(self) -> int:
        """Elements of one register of a warp."""
        return self.vector * self.lanes


def team_of(part: WarpCooperativePart, values: Mapping[str, int], lanes: int) -> Team:
    """The row's decisions about the part; `lanes` are those of a warp."""

    def value(decision: Handle) -> int:
        return decision.of(part.names, values)

    return Team(
        lanes,
        value(handles.VECTOR),
        value(handles.UNROLL),
        value(handles.WARPS),
        value(handles.ROWS),
        value(handles.HOLD) == 1,
        value(handles.SPLIT),
        tuple((n, count) for n in apiece_axes(part) if (count := value(apiece_decision(part, n))) > 1),
    )


def with_formulas(part: WarpCooperativePart) -> WarpCooperativePart:
    """The part with formulas in place of library functions, which compute in double."""
    known = part.policy.formulas

    def member(stage: Stage) -> Stage:
        init = None if stage.init is None else apply_formulas(stage.init, known)
        return replace(stage, assign=replace(stage.assign, value=apply_formulas(stage.assign.value, known)), init=init)

    return replace(part, members=tuple(map(member, part.members))) if known else part


def unflattened(axes: Sequence[Axis], number: Int) -> dict[str, Int]:
    """Where a number in row-major order is along each axis."""
    at: dict[str, Int] = {}
    below = 1
    wide = [a for a in axes if a.extent > 1]
    for axis in reversed(axes):
        if axis.extent == 1:
            at[axis.name] = axis.lower
            continue
        here = number // below if below > 1 else number
        if axis is not wide[0]:
            here = here % axis.extent
        at[axis.name] = here + axis.lower
        below *= axis.extent
    return at


def flattened(axes: Sequence[Axis]) -> Int:
    """The row-major number of a place, in terms of its axes."""
    number: Int = Const(0)
    for axis in axes:
        number = number * axis.extent + (Var(axis.name) - axis.lower)
    return number


class TeamRegisters:
    """The registers of one team: declarations, and what is known to be in them. `known` maps an element of memory (at
    `CHUNK`, of a lane) to the register that holds it."""

    def __init__(self, ctx: Context, workers: int, team: Team) -> None:
        self.ctx, self.workers, self.team = ctx, workers, team
        self.known: dict[Read, Read] = {}
        self.passing: frozenset[str] = frozenset()  # tensors of which no chunk is kept for later
        self.loads: list[Assign] = []

    @property
    def lane(self) -> Lane:
        return Lane(LANE, self.team.width)

    def declare(self, name: str, dtype: DType, slots: int = 0, vector: int | None = None) -> Read:
        """A register of every warp, of `slots` chunks (0: one that is no chunk's), as it is read at `SLOT`."""
        vector = self.team.vector if vector is None else vector
        shape = (self.workers, *([slots] if slots else []), vector * self.team.lanes)
        buffer = self.ctx.declare(name, dtype, shape, "register", elements_per_thread=vector).name
        return Read(buffer, (WARP, *([SLOT] if slots else []), Var(LANE)), dtype)

    def single(self, name: str, dtype: DType, slots: int = 0) -> Read:
        """A register of every warp that holds one number, the same in all threads."""
        shape = (self.workers, *([slots] if slots else []), 1)
        buffer = self.ctx.declare(name, dtype, shape, "register").name
        return Read(buffer, (WARP, *([SLOT] if slots else []), Const(0)), dtype)

    def fetched(
        self, value: Value, at: Mapping[str, Int], slots: int, valid: Bool = TRUE, moving: frozenset[str] = frozenset()
    ) -> Value:
        """The value at a place, what it reads along the lanes from registers, which `loads` then fill; so is what
        changes with the variables `moving`."""

        def swap(read: Read) -> Value:
            if read in self.known:
                return self.known[read]
            used = frozenset[str]().union(*(free_vars(i) for i in read.index if isinstance(i, Int)))
            lanes = LANE in used
            if not lanes and not used & moving:
                return read
            self.ctx.tensor(read.tensor)
            name = f"{read.tensor}_now"
            many = 0 if read.tensor in self.passing else slots
            register = self.declare(name, read.dtype, many) if lanes else self.single(name, read.dtype, many)
            index = tuple(i for i in register.index if isinstance(i, Int))
            self.loads.append(Assign(register.tensor, index, read, self.lane if lanes else None, valid))
            self.known[read] = register
            return register

        for read in reads(value):
            self.ctx.tensor(read.tensor)
        return place(value, at, swap)

    def made(
        self, part: WarpCooperativePart, member: Stage, at: Mapping[str, Int], valid: Bool, slots: int = 0
    ) -> list[Stmt]:
        """What an elementwise member leaves at a place: in a register for the members behind it, and in memory where
        somebody wants it there."""
        valid = all_of(valid, guard_formula(member, at))
        value = self.fetched(left_by(member), at, slots, valid)
        tensor, index = member.assign.tensor, place_index(member.assign.index, at)
        stmts: list[Stmt] = []
        behind = part.members[part.members.index(member) + 1 :]
        if any(r.tensor == tensor for m in behind for r in all_reads(m)):
            held = self.declare(f"{tensor}_made", value.dtype, slots)
            stmts.append(write(held, value, self.lane))
            self.known[Read(tensor, index, value.dtype)] = held
            value = held
        if kept(self.ctx.program, part, member):
            stmts.append(Assign(tensor, index, value, self.lane, valid))
        return stmts

    def taken(self) -> list[Assign]:
        """The loads since the last call."""
        found, self.loads = self.loads, []
        return found


def over_lanes(total: Read, other: Read, op: str, lanes: int, warp: int) -> list[Stmt]:
    """Every lane of a warp gets what all of so many lanes hold, combined: each takes what its partner has, half as far
    each time. The partner of lane e at distance s is e exclusive or s."""
    stmts: list[Stmt] = []
    lane = Lane(LANE, warp)
    distance = lanes // 2
    while distance:
        both = 2 * distance
        partner = Var(LANE) // both * both + (Var(LANE) + distance) % both
        there = Read(total.tensor, (*total.index[:-1], partner), total.dtype)
        stmts += [write(other, there, lane), write(total, combine(op, total, other), lane)]
        distance //= 2
    return stmts


def in_slot(body: Sequence[Stmt], chunk: Int, slot: Int) -> list[Stmt]:
    return list(bind(tuple(body), {str(CHUNK): chunk, str(SLOT): slot}))


def under(condition: Bool, body: Sequence[Stmt]) -> list[Stmt]:
    return list(body) if condition == TRUE else [If(condition, tuple(body))] if body else []


def warps(count: int, body: Sequence[Stmt]) -> For:
    return For(str(WARP), Const(0), Const(count), tuple(body), "warp")


def blocks(count: int, shares: int, body: Sequence[Stmt], note: str) -> Stmt:
    """The grid around a block; `shares` blocks work for each result."""
    loop = For(str(BLOCK), Const(0), Const(count), tuple(body), "block.x", note=note)
    if shares == 1:
        return loop
    return For(str(SHARE), Const(0), Const(shares), (loop,), "block.y", note="shares of the reduction")


def kept(program: Program, part: WarpCooperativePart, stage: Stage) -> bool:
    """Whether what a member writes must reach memory: an output, or read outside of the part; the last of several
    members that write it does that."""
    tensor = stage.assign.tensor
    names = {m.name for m in part.members}
    if [m.name for m in part.members if m.assign.tensor == tensor][-1] != stage.name:
        return False
    others = [s for s in program.stages if s.name not in names]
    used = any(tensor in {s.assign.tensor, *(r.tensor for r in all_reads(s))} for s in others)
    return used or not program.tensors[tensor].intermediate
