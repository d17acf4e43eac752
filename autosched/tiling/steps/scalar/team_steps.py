"""Decisions of a team's part: elements that a lane takes at once, vectors under way, warps and rows of a block, whether
rows stay in registers, and blocks that share a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autosched.ir.program import Program
from autosched.ir.value import Read, reads
from autosched.logic import Bool, Const, Int, Var, all_of, any_of, ceil_div, free_vars, maximum, where
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Part, ScalarPart, WarpCooperativePart
from autosched.tiling.plans.teams import inner_axes, lane_elements, serial_elements, team_rows, whole
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.scalar import handles
from autosched.tiling.steps.scalar.results_per_thread import (
    MOST_RESULTS,
    MOST_SUMS,
    SIDES,
    apiece_axes,
    apiece_decision,
    sides,
)
from autosched.tiling.steps.scalar.shared_along_row import row_bits
from autosched.tiling.steps.scalar.team_transpose import TILES, TeamTranspose, team_transpose

VECTORS = (1, 2, 4, 8, 16)
WIDEST = 16
"""Bytes that a lane reads with one instruction."""
UNROLLS = (1, 2, 4, 8)
WARPS = (1, 2, 4, 8, 16, 32)
ROWS = (1, 2, 4, 8)
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MOST_HELD = 64
"""Registers of a thread for what it holds of a row."""
OWN_REGISTERS = 20
"""Registers of a thread beside that: compiled, softmax and sums take 14 to 20 beside what they hold or fetch."""
MOST_TURNED = 32
"""Elements of a tile that one thread brings."""
LEAST_SHARE = 2
"""Steps of a block that shares a reduction with others: fewer are not worth another result."""


@dataclass(frozen=True)
class TeamChoices:
    """The domains of one part; beside other parts few, so that the product of their spaces stays within reach."""

    vectors: tuple[int, ...] = VECTORS
    unrolls: tuple[int, ...] = UNROLLS
    warps: tuple[int, ...] = WARPS
    rows: tuple[int, ...] = ROWS
    splits: tuple[int, ...] = SPLITS
    sides: tuple[int, ...] = SIDES


def team_choices(parts: Sequence[Part]) -> TeamChoices:
    """What each team among these parts decides."""
    if len([p for p in parts if not (isinstance(p, ScalarPart) and p.prepared)]) == 1:
        return TeamChoices()
    return TeamChoices((1, 4), (1, 4), (1, 4, 8), (1,), (1, 64), (1,))


def team_step(
    part: WarpCooperativePart, program: Program, target: Target, choices: TeamChoices = TeamChoices()
) -> Step:
    """The one step of a team's part. Derived: `chunk` (elements that a team's lanes take at once), `chunks` of a row,
    `held` registers, `threads_in_block`, `blocks`."""
    return _Decided(part, program, target, choices).step()


class _Decided:
    """The step of one part, put together."""

    def __init__(self, part: WarpCooperativePart, program: Program, target: Target, choices: TeamChoices) -> None:
        self.part, self.program, self.target, self.choices = part, program, target, choices
        self.lanes = target.limits["warp_threads"]
        self.decisions: list[Decision] = []
        self.rules: list[Rule] = []
        self.derived: dict[str, Int] = {}
        self.inert: dict[str, Bool] = {}

    def step(self) -> Step:
        part = self.part
        extent, serial = lane_elements(part), serial_elements(part)
        narrow = min([r.dtype.bytes for r in lane_reads(part)], default=4)
        vector = self.decide(handles.VECTOR.name, tuple(v for v in self.choices.vectors if v * narrow <= WIDEST))
        unroll = self.decide(handles.UNROLL.name, self.choices.unrolls)
        most = self.target.limits.get("threads_per_block", 1024) // self.lanes
        several = part.across or serial == 1 or splits(part)
        warps = self.decide(handles.WARPS.name, tuple(w for w in self.choices.warps if w <= most) if several else (1,))
        across = team_transpose(part)
        tile = None if across is None else self.tiled(across, warps)
        chunk = self.derive("chunk", (warps if part.across or serial == 1 else Const(1)) * vector * self.lanes)
        chunks = self.derive("chunks", ceil_div(extent, chunk))
        useful = any_of(chunk < 2 * extent, chunk <= self.lanes, *([] if tile is None else [tile > 0]))
        self.rule("chunk", useful, f"lanes for {extent:,} elements")
        threads: Int = warps * self.lanes
        if part.across:
            rows = self.decide(handles.ROWS.name, self.choices.rows)
            self.rule("rows", rows < 2 * team_rows(part), f"rows of {team_rows(part):,}")
            threads = rows * threads
            steps: Int = chunks
            blocks: Int = ceil_div(team_rows(part), rows)
        elif serial == 1:
            steps, blocks = chunks, ceil_div(extent, chunk * unroll)
            if tile is not None and across is not None:
                blocks = where(tile > 0, self.tiles(across, tile), blocks)
        else:
            rows = self.decide(handles.ROWS.name, self.choices.rows)
            shared = [warps, *([Var(part.names("split"))] if splits(part) else [])]
            alone = all_of(*(s.eq(1) for s in shared), *([] if tile is None else [tile.eq(0)]))
            fits = any_of(rows.eq(1), alone & (rows * chunk < 2 * extent))
            self.rule("rows", fits, f"warps with sums of their own, which others share, or more than {extent:,} need")
            threads = rows * threads
            each = self.apiece(vector, unroll, alone)
            steps, blocks = ceil_div(serial, warps), ceil_div(extent, chunk * rows * each)
            self.rule("warps", warps <= serial, f"warps for {serial:,} terms")
        if splits(part):
            split = self.decide(handles.SPLIT.name, self.choices.splits)
            self.rule("split", any_of(split.eq(1), split * LEAST_SHARE <= steps), "shares of too few steps")
            steps, blocks = ceil_div(steps, split), blocks * split
        self.rule("unroll", any_of(unroll.eq(1), unroll <= steps), "vectors under way are more than there are")
        threads = self.derive("threads_in_block", threads)
        self.rule("threads_in_block", threads <= most * self.lanes, f"threads in a block > {most * self.lanes:,}")
        self.derive("blocks", blocks)
        if again(part):
            self.held(chunks, vector, threads)
        self.decide(handles.THREADS.name, (1,))
        return Step("team", tuple(self.decisions), tuple(self.rules), self.derived, self.inert)

    def apiece(self, vector: Int, unroll: Var, alone: Bool) -> Int:
        """How many results a thread has beside its vector's elements."""
        each: Int = Const(1)
        for number in apiece_axes(self.part):
            several = tuple(s for s in sides(self.part, number) if s in self.choices.sides)
            if len(several) > 1:
                each = each * self.decide(apiece_decision(self.part, number).name, several)
        if each == Const(1):
            return each
        each = self.derive("each", each)
        self.inert[unroll.name] = each > 1
        fits = any_of(each.eq(1), alone & (each <= MOST_RESULTS))
        self.rule("each", fits, f"results a thread, of terms that others share, or more than {MOST_RESULTS}")
        sums = self.derive("sums", each * vector)
        self.rule("sums", any_of(each.eq(1), sums <= MOST_SUMS), f"sums of a thread > {MOST_SUMS}")
        return each

    def tiled(self, across: TeamTranspose, warps: Int) -> Var:
        """Whether operands that lie across the results pass through tiles in shared memory."""
        sizes = [t for t in TILES if t % self.lanes == 0]  # a line of a tile is whole warps
        tile = self.decide(handles.TILE.name, tuple(sizes), ("none", *map(str, sizes[1:])))
        names = self.part.names
        self.inert |= {names("vector"): tile > 0, names("unroll"): tile > 0}
        bits = sum(r.dtype.bits for _, r in across.reads)
        most = self.target.limits.get("static_shared_bytes", 49152)
        shared = self.derive("tile_bytes", tile * (tile + 1) * bits // 8)
        self.rule("tile_bytes", shared <= most, f"bytes of tiles in a block > {most:,}")
        each = self.lanes * MOST_TURNED
        few = any_of(tile.eq(0), (tile * tile <= warps * each) & (warps <= tile))
        self.rule("tile", few, f"lines of a tile are fewer than warps, or more than {MOST_TURNED} elements a thread")
        return tile

    def tiles(self, across: TeamTranspose, tile: Int) -> Int:
        count: Int = Const(1)
        for n, axis in enumerate(self.part.members[0].spatial):
            pair = n in (across.slow, across.fast)
            count = count * (ceil_div(axis.extent, maximum(tile, 1)) if pair else axis.extent)
        return count

    def held(self, chunks: Int, vector: Int, threads: Int) -> None:
        """Whether a row stays in registers."""
        hold = self.decide(handles.HOLD.name, (0, 1), ("read again", "registers"))
        self.inert[self.part.names("unroll")] = hold.eq(1)
        held = self.derive("held", hold * ceil_div(chunks * vector * row_bits(self.part, self.program), 32))
        self.rule("held", held <= MOST_HELD, f"registers of a thread for a row > {MOST_HELD}")
        most = self.target.limits.get("registers_per_core", 65536)
        used = self.derive("block_registers", (held + OWN_REGISTERS) * threads)
        self.rule("block_registers", used <= most, f"registers in a block > {most:,}")

    # -- pieces -------------------------------------------------------------------------------------------------------

    def decide(self, name: str, domain: tuple[int, ...], labels: tuple[str, ...] = ()) -> Var:
        self.decisions.append(Decision(self.part.names(name), domain, labels))
        return Var(self.part.names(name))

    def derive(self, name: str, quantity: Int) -> Var:
        self.derived[self.part.names(name)] = quantity
        return Var(self.part.names(name))

    def rule(self, name: str, holds: Bool, sentence: str) -> None:
        own = self.part.names(name)
        self.rules.append(Rule(own, holds, f"{{{own}}} {sentence}"))


def splits(part: WarpCooperativePart) -> bool:
    """Whether several warps, and blocks, may share the part's only reduction."""
    stage = part.members[0]
    return whole(part) and part.policy.reorders(stage.assign.op, stage.assign.value.dtype)


def lane_reads(part: WarpCooperativePart) -> list[Read]:
    """What members read from memory along the lanes, each once."""
    written = {m.assign.tensor for m in part.members}
    found: dict[Read, None] = {}
    for member in part.members:
        lanes = {a.name for a in inner_axes(part, member)}
        for read in reads(member.assign.value):
            used = frozenset[str]().union(*(free_vars(i) for i in read.index if isinstance(i, Int)))
            if read.tensor not in written and used & lanes:
                found[read] = None
    return list(found)


def again(part: WarpCooperativePart) -> bool:
    """Whether several members go over the row."""
    return part.across and sum(bool(inner_axes(part, m)) for m in part.members) > 1


def shared_reads(part: WarpCooperativePart) -> list[str]:
    """Tensors that several members read along the lanes: what is worth holding."""
    found = lane_reads(part)
    read = [{r.tensor for r in reads(m.assign.value)} for m in part.members]
    return [name for name in dict.fromkeys(r.tensor for r in found) if sum(name in each for each in read) > 1]
