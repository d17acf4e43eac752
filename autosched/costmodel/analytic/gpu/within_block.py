"""The analytic clock of tile loops on a GPU: each part of the body takes what it would take as a kernel on one core,
without its launch; a barrier follows. Blocks of the grid go on at once on all cores, and a few on each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.gpu_clock import COPIES, LAUNCH_SECONDS, Repeated
from autosched.costmodel.analytic.gpu.rates import latency_cycles
from autosched.ir.value import Call, Read, reads, walk
from autosched.logic.walk import free_vars
from autosched.machine.target import Target
from autosched.tiling.plans.find_warp_rows import warp_rows
from autosched.tiling.plans.plan import Part, Plan, TensorPart, TileLoopsPart
from autosched.tiling.plans.warp_rows import FragmentStage, WarpRows, stages_of
from autosched.tiling.steps.gpu.block_tile import SCOPE_WARPS
from autosched.tiling.steps.gpu.bodies.held_rows import AHEAD, BESIDE_LAST, MEETING, RESIDENT, ROWS, WITH_PRODUCT
from autosched.tiling.steps.gpu.bodies.kept_tensors import tensor_bytes
from autosched.tiling.steps.gpu.bodies.tile_loops import MOST_THREADS
from autosched.tiling.steps.gpu.operands.operand_sources import GLOBAL, stage_name

BARRIER_CYCLES = 40.0  # of a block's threads that meet after a part (a round figure)

ISSUERS = 4.0  # schedulers of a core, each an instruction of a warp a cycle (H100 whitepaper)
CALL_OPERATIONS = 8  # of an exponential (docs/cuda.md, "Scalar stages"); the like of it
ROW_LANES = 8.0  # elements of a row in one fragment: its lanes do the same for a row's number
SHUFFLE_OPERATIONS = 6.0  # of a row's lanes: three shuffles, and what follows each

BESIDE_ROWS, IN_TURNS = 0.6, 0.85
"""Shares of its time that a product takes which runs beside row stages, and that all takes where two blocks of a core
take turns. Round figures, near what attention of 2048 tokens takes on an H200 with and without: 192 and 201 µs at d =
128, 120 and 145 at d = 64 (docs/cuda.md)."""
MET_LATER = 0.92
"""The same where warps meet an iteration later: 335 and 363 µs at d = 128, 217 and 224, 200 and 232 at d = 64, of
attention of 16 heads and 4096 tokens on an H200."""
LAST_IN_TURNS = 0.88
"""The same where blocks take turns and the last product runs beside the next iteration's first: 190 and 217 µs at d =
64 of that attention; where a core has one block, it takes as long as without (350 µs at d = 128)."""

TOO_FEW_REGISTERS = 3.0
"""The same where blocks that a core is to hold leave a thread fewer registers than it needs. A round figure from one
kernel: 1,040 µs where the fastest takes 331, of full attention of 16 heads and 4096 tokens at d = 128 on an H200. The
compiler took 255 registers all the same, and ran its calls one by one (ptxas C7518), since one of two warpgroups of
the block made them."""

MOVING = ("shared", "l2", "dram", "store")
"""Terms of bytes."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]
Terms = dict[str, Column]


def one_core(target: Target) -> Target:
    """A core with its share of what all cores share."""
    memories = tuple(
        replace(m, bandwidth_bytes_per_s=m.bandwidth_bytes_per_s / target.cores)
        if m.shared_by == "device" and m.bandwidth_bytes_per_s
        else m
        for m in target.memories
    )
    return replace(target, cores=1, memories=memories)


def within_block(terms: Terms, target: Target) -> Terms:
    """Terms of a kernel as those of a part of a block: a barrier in place of the launch."""
    launch = next((name for name in ("launch", "overhead") if name in terms), None)
    if launch is None:
        return terms
    barrier = np.full_like(terms["total"], BARRIER_CYCLES / target.clock_hz)
    return terms | {launch: barrier, "total": terms["total"] - terms[launch] + barrier}


def times_of(loops: TileLoopsPart, nest: TensorPart) -> Repeated:
    """How often these loops around run a nest whose blocks are the grid's, and what memory moves for all of them: each
    slice once, since blocks that want the same one run together. Iterations that follow each other are taken to choose
    alike: rows of one expert lie together."""
    counts = {t.axis.name: float(t.last - t.first + 1) for t in loops.loops}
    chosen = {c.name: c for c in loops.chosen}
    times = prod(counts.values())
    program, accumulator = loops.member.program, nest.nest.stage.assign.tensor
    moved = once = 0.0
    for name, window in loops.windows.items():
        different = 1.0
        for variable in {v for i in window.start for v in free_vars(i)}:
            choice = chosen.get(variable)
            around = prod(counts[n] for n in choice.moved_by) if choice else counts.get(variable, 1.0)
            different *= min(around, float(choice.extent)) if choice else around
        size = float(tensor_bytes(program.tensors[name]))
        moved, once = moved + size * (times if name == accumulator else min(different, times)), once + size
    return Repeated(times, moved / once)


def grid_terms(part: TileLoopsPart, v: Columns, target: Target) -> Terms:
    """What tile loops take beside what is inside: the launch, and intermediates that go through memory (written and
    read once an iteration; they stay in the cache that all cores share)."""
    threads = v[part.names("threads")].astype(np.float64)
    none = np.zeros_like(threads)
    if not part.grid:
        return {"launch": none, "l2": none, "total": none}
    shared = next((m.bandwidth_bytes_per_s for m in target.memories if m.name == "L2"), None)
    moved = 2.0 * part.trips * v[part.names("block_memory")].astype(np.float64) / (shared or np.inf)
    launch = np.full_like(threads, LAUNCH_SECONDS)
    return {"launch": launch, "l2": moved, "total": launch + moved}


@dataclass(frozen=True)
class InRegisters:
    """A part of a body whose `rows` workers may share. `left` is the share of its bytes that still moves; with
    `issued`, operations of all lanes, it is computed in fragments. `waits`: a barrier stands in front of it all the
    same. `first`: it is the first product of an iteration."""

    rows: WarpRows
    left: float
    waits: bool
    issued: float | None = None
    first: bool = False
    loaded: tuple[str, ...] = ()
    """Decisions on sources of operands that each iteration takes anew from outside of the body."""

    @property
    def handle(self) -> str:
        """The decision how many workers share the rows."""
        return self.rows.loops.names(ROWS.name)

    @property
    def warps(self) -> int:
        """Of a worker."""
        return SCOPE_WARPS[self.rows.scope]

    @staticmethod
    def of(part: Part, plan: Plan, loops: TileLoopsPart) -> InRegisters | None:
        """That of one part of the body of these loops; None where it holds nothing."""
        rows = warp_rows(loops)
        if rows is None:
            return None
        if rows.computes(part):
            return InRegisters(rows, 0.0, False, sum(map(_operations, stages_in(rows, part))))
        product = next((p for p in rows.products if p.part is part), None)
        if product is None:
            return None
        tensors = {t for s in product.part.computed_stages for t in (s.assign.tensor, *(r.tensor for r in s.reads))}
        every = sum(tensor_bytes(plan.program.tensors[n]) for n in tensors)
        kept = sum(tensor_bytes(plan.program.tensors[n]) for n in tensors & rows.held.keys())
        first = product is rows.products[0]
        return InRegisters(rows, 1.0 - kept / every, not product.taken, None, first, tuple(_loaded(rows, product.part)))

    def apply(self, terms: Terms, v: Columns, target: Target) -> Terms:
        """Terms without what stays in registers, and without the barrier in front of what takes it."""
        if self.handle not in v:
            return terms
        warps = v[self.handle].astype(np.float64) * self.warps
        held = warps > 0
        if self.issued is not None:
            lanes = float(target.limits["warp_threads"])
            seconds = self.issued / lanes / np.clip(warps, 1.0, ISSUERS) / target.clock_hz
            none = np.zeros_like(seconds)
            total = seconds * self._of_turn(v, target)
            own = dict.fromkeys(terms, none) | {"compute": seconds, "total": total}
            return {name: np.where(held, own.get(name, none), column) for name, column in terms.items()}
        moves = np.where(held, self.left, 1.0)
        found = terms | {name: terms[name] * moves for name in MOVING if name in terms}
        total = terms["total"] * moves
        if not self.waits and "launch" in terms:
            barrier = np.where(held, np.minimum(BARRIER_CYCLES / target.clock_hz, terms["launch"]), 0.0)
            found["launch"] = terms["launch"] - barrier
            total = np.maximum(total - barrier, 0.0)
        waited = sum((v[name] == GLOBAL for name in self.loaded if name in v), start=np.zeros_like(total))
        taken = self._fetched_ahead(found, total, v) + waited * latency_cycles(target).get("L2", 0.0) / target.clock_hz
        total = np.where(held, taken * self._of_turn(v, target), total)
        return found | {"total": total}

    def _fetched_ahead(self, terms: Terms, total: Column, v: Columns) -> Column:
        """What a product takes whose slices came while the iteration before computed."""
        ahead = self.rows.loops.names(AHEAD.name)
        if ahead not in v:
            return total
        beside = np.where(self.first & (v[ahead] >= WITH_PRODUCT), BESIDE_ROWS, 1.0)
        busy = np.maximum.reduce([terms[name] for name in ("mma", "shared", "l2") if name in terms]) * beside
        return np.where(v[ahead] > 0, np.minimum(busy + terms.get(COPIES, 0.0), total), total)

    def _of_turn(self, v: Columns, target: Target) -> Column:
        """The share of its time that a part takes where others run beside it: other blocks of the core, if registers
        hold as many as `resident` asks for, and warps of the block that meet an iteration later."""
        names = self.rows.loops.names
        late = v.get(names(MEETING.name), 0)
        asked, workers = v[names(RESIDENT.name)], v[self.handle]
        own = np.maximum(1, workers) * self.warps * target.limits["warp_threads"]
        threads = np.maximum(own, MOST_THREADS)  # other parts of the block may be as wide
        limit = target.limits.get("registers_per_core", 65536) // (np.maximum(1, asked) * threads)
        shared_by, place = np.unique(np.maximum(1, workers), return_inverse=True)
        needed = np.array([self.rows.registers(int(w)) for w in shared_by])[place]
        last = np.asarray(v.get(names(AHEAD.name), 0)) == BESIDE_LAST
        turns = np.where(last, IN_TURNS * LAST_IN_TURNS, IN_TURNS)
        blocks = np.where(asked > 1, np.where(needed <= limit, turns, TOO_FEW_REGISTERS), 1.0)
        return blocks * np.where(np.asarray(late) > 0, MET_LATER, 1.0)


def _loaded(rows: WarpRows, part: TensorPart) -> Iterator[str]:
    """Names of the decisions from where operands come that each iteration takes anew, and that no worker holds. Of one
    straight from memory fragments are loaded in front of the calls, which wait for them."""
    for operand in part.nest.intrinsic.inputs:
        tensor = part.nest.mapping.operands[operand.name].tensor
        window = rows.loops.windows.get(tensor)
        if tensor not in rows.held and window is not None and rows.loops.moving(window):
            yield stage_name(part.names, operand.name)


def stages_in(rows: WarpRows, part: Part) -> list[FragmentStage]:
    return [rows.stages[s.name] for s in stages_of(part)]


def _operations(row: FragmentStage) -> float:
    """Operations of all lanes: those of a number of each row are done by every lane that has the row, and those of
    numbers that the text has by the compiler."""
    stage, axis = row.stage, row.column_axis
    wide = axis.extent if axis is not None else ROW_LANES
    rows = next(a.extent for a in stage.axes if a.name == row.rows)
    nodes = (n for n in walk(stage.assign.value) if not isinstance(n, Read) and any(reads(n)))
    calls = sum(CALL_OPERATIONS if isinstance(n, Call) else 1 for n in nodes)
    across = ROW_LANES * SHUFFLE_OPERATIONS if row.reduces else 0.0
    return float(rows) * (wide * (1.0 + calls) + across)
