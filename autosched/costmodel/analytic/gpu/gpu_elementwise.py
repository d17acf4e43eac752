"""The analytic clock of a team's part on a GPU: bytes under way against latency, issue slots, waves of blocks.

Memory delivers what warps have asked for within its latency (Little's law), so a core with few reads under way, or
between passes over a row, leaves bandwidth unused; arithmetic is issued beside that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autosched.costmodel.analytic.gpu.gpu_clock import LAUNCH_SECONDS
from autosched.costmodel.analytic.gpu.gpu_traffic import L2_SHARE, LINE_BYTES, Column, Columns
from autosched.costmodel.analytic.gpu.rates import DRAM_SHARE, latency_cycles
from autosched.costmodel.analytic.gpu.team_bytes import ReadBytes, read_bytes, written_bytes
from autosched.costmodel.analytic.gpu.team_instructions import operations, shared_conversions
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import elements, inner_axes, reducing, serial_elements, team_rows
from autosched.tiling.steps.scalar.results_per_thread import apiece_axes, apiece_decision
from autosched.tiling.steps.scalar.team_steps import OWN_REGISTERS, lane_reads

SHUFFLE_CYCLES = 30.0  # of a shuffle and the operation behind it, each waiting for the one before (a round figure)
BARRIER_CYCLES = 100.0  # of a block's barrier with a store and a load of shared memory around it (a round figure)
BLOCK_CYCLES = 400.0  # of a block's start and end beside its work (a round figure)
DISPATCH_CYCLES = 140.0  # from one block of a core to the next: 524,288 blocks of a few reads took 318 us on an H200
QUEUE = 1.5  # how much longer a read takes where memory is busy than on an idle device (a round figure)
ISSUERS = 4.0  # schedulers of a core, each an instruction of a warp a cycle (H100 whitepaper)
UNHIDDEN = 0.15  # share of the shorter of two units' work that does not overlap with the longer


@dataclass(frozen=True)
class TeamSchedule:
    """Decisions and counts of each row, float64 of shape (rows,). What a part does not decide has the value that
    changes nothing."""

    vector: Column  # elements of one load of a lane
    unroll: Column  # loads that a lane has under way
    warps: Column  # of a team
    split: Column  # blocks that share a reduction
    row_registers: Column  # of a thread, for what it keeps of a row between passes; 0: each pass reads the row again
    chunks: Column  # loads of all lanes of a team for one row
    rows: Column  # of a block, where teams have rows
    results: Column  # of a thread, side by side
    results_along: Mapping[str, Column]  # the same by spatial axis
    tile: Column  # of a transpose in shared memory, 0: none
    blocks: Column
    threads: Column  # of a block

    @staticmethod
    def of(part: WarpCooperativePart, v: Columns) -> TeamSchedule:
        """Read from columns of the plan's space."""
        names, rows = part.names, len(v[part.names("vector")])

        def column(name: str, default: float = 1.0) -> Column:
            return v[names(name)].astype(np.float64) if names(name) in v else np.full(rows, default)

        return TeamSchedule(
            vector=column("vector"),
            unroll=column("unroll"),
            warps=column("warps"),
            split=column("split"),
            row_registers=column("held", 0.0),
            chunks=column("chunks"),
            rows=column("rows") if part.across else np.ones(rows),
            results=column("each"),
            results_along={
                part.members[0].spatial[k].name: column(apiece_decision(part, k).name) for k in apiece_axes(part)
            },
            tile=column("tile", 0.0),
            blocks=column("blocks"),
            threads=column("threads_in_block"),
        )


def team_terms(part: WarpCooperativePart, v: Columns, program: Program, target: Target) -> dict[str, Column]:
    """Seconds of each row: `compute` (issuing), `memory`, `l2`, `overhead` (launches) and `total`."""
    s, cores = TeamSchedule.of(part, v), float(target.cores)
    at_once = _blocks_at_once(part, s, target)
    read, written = read_bytes(part, s.vector, s.tile > 0, s.results_along, program), written_bytes(part, program)
    dram, l2 = _memory_seconds(part, s, at_once, read, written, target)
    issue = _issue_slots(part, s, read, written, target)
    busy = np.maximum(issue / ISSUERS, read.port / LINE_BYTES / s.blocks)
    chain = _chain_cycles(part, s, issue, target)
    full = np.floor(s.blocks / (cores * at_once))
    rest = np.ceil((s.blocks - full * cores * at_once) / cores)
    on_core = full * np.maximum(at_once * busy, chain) + np.where(rest > 0, np.maximum(rest * busy, chain), 0.0)
    on_core = np.maximum(on_core, DISPATCH_CYCLES * np.ceil(s.blocks / cores)) / target.clock_hz
    memory = np.maximum(dram, l2)
    launches = np.where(s.split > 1, 2.0, 1.0) * LAUNCH_SECONDS
    # A block that has its core to itself reads nothing while it computes.
    unhidden = np.maximum(UNHIDDEN, at_once**-1.5) if part.across else np.full_like(at_once, UNHIDDEN)
    return {
        "compute": busy * s.blocks / np.minimum(s.blocks, cores) / target.clock_hz,
        "memory": memory,
        "l2": l2,
        "overhead": launches,
        "total": np.maximum(on_core, memory) + unhidden * np.minimum(on_core, memory) + launches,
    }


def _blocks_at_once(part: WarpCooperativePart, s: TeamSchedule, target: Target) -> Column:
    """Blocks that fit on a core, by its warps and registers."""
    limits = target.limits
    words = float(np.mean([max(1.0, r.dtype.bits / 32) for r in lane_reads(part)] or [1.0]))
    under_way = s.vector * np.where(s.results > 1, s.results, s.unroll) * words
    data = np.where(s.row_registers > 0, s.row_registers, under_way)
    registers = np.ceil((OWN_REGISTERS + data + s.vector * s.results) / 8.0) * 8.0
    at_once = np.minimum(
        np.floor(limits.get("warps_per_core", 64) * float(limits["warp_threads"]) / s.threads),
        np.floor(limits.get("registers_per_core", 65536) / (registers * s.threads)),
    )
    return np.clip(at_once, 1.0, float(limits.get("blocks_per_core", 32)))


def _memory_seconds(
    part: WarpCooperativePart, s: TeamSchedule, at_once: Column, read: ReadBytes, written: float, target: Target
) -> tuple[Column, Column]:
    """Seconds of memory and of L2. What members read again comes out of L2 where it holds all rows under way."""
    once = read.first + written
    again = np.where(s.row_registers > 0, 0.0, read.again)
    lost: Column | float = 0.0
    if part.across:
        l2_bytes = float(next((m.bytes for m in target.memories if m.name == "L2"), 0))
        blocks = np.minimum(s.blocks, float(target.cores) * at_once)
        under_way = blocks * s.rows * once / max(1.0, float(team_rows(part)))
        lost = np.clip(1.0 - L2_SHARE * l2_bytes / np.maximum(under_way, 1.0), 0.0, 1.0)
    from_dram = once + again * lost
    if serial_elements(part) > 1:  # lines of a matrix of which a warp reads less than memory moves
        size = max((r.dtype.bytes for r in lane_reads(part)), default=4)
        warp_bytes = float(target.limits["warp_threads"]) * s.vector * size
        from_dram = from_dram * np.maximum(1.0, 0.5 + 0.5 * LINE_BYTES / warp_bytes)
    return from_dram / _speed(target, "DRAM") / DRAM_SHARE, (once + again) / _speed(target, "L2")


def _issue_slots(
    part: WarpCooperativePart, s: TeamSchedule, read: ReadBytes, written: float, target: Target
) -> Column:
    """Instructions of the warps of one block: arithmetic, reads, writes and their addresses."""
    arithmetic = np.where(s.row_registers > 0, operations(part, True), operations(part, False))
    arithmetic = arithmetic - shared_conversions(part, s.results_along)
    of_memory = (read.first + read.again + written) / 4.0 / s.vector
    return (arithmetic + of_memory) / float(target.limits["warp_threads"]) / s.blocks


def _chain_cycles(part: WarpCooperativePart, s: TeamSchedule, issue: Column, target: Target) -> Column:
    """Cycles of one block that has its core to itself: it issues, and waits for each round of loads (out of L2 where
    a later pass reads a row again), for shuffles and barriers."""
    lanes, latency = float(target.limits["warp_threads"]), latency_cycles(target)
    if part.across:
        passes = float(max(1, sum(bool(inner_axes(part, m)) for m in part.members)))
        steps = np.ceil(s.chunks / s.split / s.unroll)
        cached = s.row_registers > 0
        rounds = np.where(cached, 1.0, steps)
        again = np.where(cached, 0.0, steps * (passes - 1.0))
        levels = np.log2(lanes) + np.log2(s.warps)
        waits = len(reducing(part)) * (levels * SHUFFLE_CYCLES + np.where(s.warps > 1, BARRIER_CYCLES, 0.0))
    else:
        serial = float(serial_elements(part))
        rounds = np.ceil(np.ceil(serial / s.warps / s.split) / s.unroll)
        again = np.zeros_like(issue)
        waits = np.where(((s.warps > 1) & (serial > 1)) | (s.tile > 0), BARRIER_CYCLES, 0.0)
    groups = float(elements(part.members[0].reduction[:-1])) if part.members[0].reduction else 1.0
    rounds = np.where(s.results > 1, groups, rounds)  # a thread asks at once for all that a line of a window needs
    near, trip = latency.get("L2", 250.0), latency.get("DRAM", 500.0) * QUEUE
    issuing = issue / np.minimum(ISSUERS, s.threads / lanes)
    cycles: Column = issuing + rounds * trip + again * near + waits + BLOCK_CYCLES
    return cycles


def _speed(target: Target, name: str) -> float:
    """Bytes a second of a level that all cores share."""
    return next((m.bandwidth_bytes_per_s for m in target.memories if m.name == name and m.bandwidth_bytes_per_s), 1e30)
