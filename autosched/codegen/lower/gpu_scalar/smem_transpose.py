"""Lowering of elementwise stages whose operands lie across their results: tiles that shared memory turns.

for block: warp for warp:  A_now = A[line, lanes along the operand]; A_tile[line] = A_now
warp for warp:             A_turned = A_tile[lanes, line]; B[line, lanes along the result] = f(A_turned)

A tile's rows are one element longer than it is wide, so that a warp's lanes meet different banks both ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.gpu_scalar.team import (
    BLOCK,
    CHUNK,
    WARP,
    Team,
    TeamRegisters,
    blocks,
    in_slot,
    unflattened,
    warps,
    with_formulas,
)
from autosched.codegen.lower.scalar.shape import guard_formula
from autosched.codegen.tree.kernel import Assign, For, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.codegen.tree.update import write
from autosched.ir.nodes import Axis, Stage
from autosched.ir.value import Read
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import elements
from autosched.tiling.steps.scalar.team_transpose import TeamTranspose


def lower_transposed(
    part: WarpCooperativePart, ctx: Context, team: Team, tile: int, found: TeamTranspose
) -> tuple[Stmt, ...]:
    """One grid of tiles."""
    shape = Team(team.lanes, tile // team.lanes, 1, min(team.warps, tile))
    return (_Tiles(with_formulas(part), ctx, shape, tile, found).emit(),)


class _Tiles:
    def __init__(self, part: WarpCooperativePart, ctx: Context, team: Team, tile: int, found: TeamTranspose) -> None:
        self.part, self.ctx, self.team, self.tile, self.found = part, ctx, team, tile, found
        self.lines = tile // team.warps  # of a tile, that one warp takes
        self.registers = TeamRegisters(ctx, team.warps, team)
        self.line = CHUNK * team.warps + WARP if team.warps > 1 else CHUNK
        for member in part.members:
            for read in (member.target, *all_reads(member)):
                ctx.tensor(read.tensor)
        sizes = [-(-a.extent // tile) if n in self.pair else a.extent for n, a in enumerate(part.members[0].spatial)]
        self.transposed: list[tuple[Read, Read]] = []  # registers, and what of a tile each lane finds there
        self.grid = [Axis(f".{n}", Const(0), Const(size)) for n, size in enumerate(sizes)]

    @property
    def pair(self) -> tuple[int, int]:
        return self.found.slow, self.found.fast

    def emit(self) -> Stmt:
        members = {m.name: m for m in self.part.members}
        pairs = [self.brought(members[name], read) for name, read in self.found.reads]
        loads, fills = [load for load, _ in pairs], [fill for _, fill in pairs]
        lane = self.registers.lane
        store: list[Stmt] = [*(write(register, source, lane) for register, source in self.transposed)]
        store += [s for member in self.part.members for s in self.made(member)]
        phases = [[*self.over_lines(loads), *self.over_lines(fills)], self.over_lines(store)]
        count = elements(self.grid)
        return blocks(count, 1, [warps(self.team.warps, p) for p in phases], f"tiles of {self.tile} by {self.tile}")

    def over_lines(self, body: Sequence[Stmt]) -> list[Stmt]:
        """For each line of a tile that a warp takes."""
        if not body:
            return []
        return [For(str(CHUNK), Const(0), Const(self.lines), tuple(in_slot(body, CHUNK, CHUNK)), "unrolled")]

    def at(self, member: Stage, slow: Int, fast: Int) -> tuple[dict[str, Int], Bool]:
        """A place in the block's tile, and whether it is one of the result's."""
        tiles = unflattened(self.grid, BLOCK)
        at: dict[str, Int] = {}
        inside: list[Bool] = []
        for n, axis in enumerate(member.spatial):
            number = tiles[f".{n}"]
            if n in self.pair:
                number = number * self.tile + (slow if n == self.found.slow else fast)
                inside += [number < axis.extent] if axis.extent % self.tile else []
            at[axis.name] = number + axis.lower
        return at, all_of(*inside) if inside else TRUE

    def brought(self, member: Stage, read: Read) -> tuple[Stmt, Stmt]:
        """An operand's tile, lanes along the operand; what the second phase reads of it."""
        registers, name = self.registers, read.tensor
        at, inside = self.at(member, Var(LANE), self.line)
        here = place(read, at)
        assert isinstance(here, Read)
        now = registers.declare(f"{name}_now", read.dtype, self.lines)
        tile = self.ctx.declare(f"{name}_tile", read.dtype, (self.tile, self.tile + 1), "shared").name
        transposed = registers.declare(f"{name}_turned", read.dtype)
        later, _ = self.at(member, self.line, Var(LANE))
        registers.known[Read(name, place_index(read.index, later), read.dtype)] = transposed
        self.transposed.append((transposed, Read(tile, (Var(LANE), self.line), read.dtype)))
        load = write(now, here, registers.lane, all_of(inside, guard_formula(member, at)))
        return load, Assign(tile, (self.line, Var(LANE)), now, registers.lane)

    def made(self, member: Stage) -> list[Stmt]:
        """A member's results, lanes along them."""
        at, inside = self.at(member, self.line, Var(LANE))
        made = self.registers.made(self.part, member, at, inside)
        return [*self.registers.taken(), *made]
