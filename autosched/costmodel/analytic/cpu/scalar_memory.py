"""Seconds of scalar stages in a CPU's memories: their tensors once, and again what does not stay in the first cache.

A store through the caches reads its line first where memory holds it; one past them does not, and goes to memory where
a cache would have held it. A row that nobody asks for ahead is waited for by its first pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from autosched.costmodel.analytic.cpu.scalar_cycles import Column, extent
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.variables import index_vars
from autosched.machine.target import Memory, Target
from autosched.tiling.analysis.nontemporal import FAR, FAR_BYTES, row_bytes
from autosched.tiling.plans.plan import FusedLoopsPart

UNASKED = 0.4
"""More of the shorter of computing and waiting for memory that is not hidden, where no row is asked for ahead; nothing
where rows are asked for `streams.FAR_BYTES` ahead."""


def memory_seconds(stages: Sequence[Stage], program: Program, target: Target, threads: Column, past: Column) -> Column:
    """Seconds to move each tensor of these stages once, through the level of memory that holds all of them; `past`:
    whether results bypass the caches."""
    written = {s.assign.tensor for s in stages}
    read = sum(_bytes(program, t) for t in {r.tensor for s in stages for r in s.reads} - written)
    stored = sum(_bytes(program, t) for t in written)
    known = [m for m in target.memories if m.bandwidth_bytes_per_s]
    if not known:
        return np.zeros_like(threads)
    last = known[-1]
    for m in target.memories:
        if m.name.startswith("L") and m.name != "L1" and read + stored <= m.bytes and m.bandwidth_bytes_per_s:
            through = _moving(read + stored, m, threads)
            return np.where(past > 0, _moving(read, m, threads) + _moving(stored, last, threads), through)
    return np.where(past > 0, _moving(read + stored, last, threads), _moving(read + 2 * stored, last, threads))


def asked_bytes(part: FusedLoopsPart, rows: Column, ahead: Column) -> Column:
    """Bytes from the rows under way to the end of those that are asked for; 0 where none are."""
    if not part.asked:
        return np.zeros_like(rows)
    row = row_bytes(part.members[0].stage, part.asked)
    further = np.where(ahead == FAR, np.maximum(1.0, FAR_BYTES // (rows * row)), ahead)
    return further * rows * row


def revisited_seconds(part: FusedLoopsPart, program: Program, target: Target, rows: Column, asked: Column) -> Column:
    """Seconds of one thread to move what the passes read and write out of the second cache, where the rows that are
    under way, and those `asked` for, do not stay in the first."""
    level = {m.name: m for m in target.memories}
    first, second = level.get("L1"), level.get("L2")
    if first is None or second is None or not second.bandwidth_bytes_per_s:
        return np.zeros_like(rows)
    stages = [m.stage for m in part.members]
    count = prod(extent(a) for a in stages[0].axes if a.name in part.shared)
    touched = {r.tensor for s in stages for r in (*s.reads, s.target)}
    row = sum(_bytes(program, t) for t in touched) / count
    moved = sum(_passed(s) for s in stages)
    footprint = rows * row + asked
    crowding = np.log2(np.maximum(1.0, footprint / first.bytes))  # as measured: twice the rows, as much again
    return crowding * moved / second.bandwidth_bytes_per_s


def _passed(stage: Stage) -> float:
    """Bytes that one stage reads and writes, vectors that its innermost axis does not move left out."""
    points = float(prod(extent(a) for a in stage.axes))
    inner = stage.axes[-1].name
    moving = {r for r in (*stage.reads, stage.target) if inner in index_vars(r.index)}
    return points * sum(r.dtype.bits / 8 for r in moving)


def _bytes(program: Program, tensor: str) -> float:
    t = program.tensors[tensor]
    return float(prod(t.extents)) * t.dtype.bits / 8


def _moving(total: float, level: Memory, threads: Column) -> Column:
    """Seconds to move so many bytes out of a level: each thread draws what one core can, all together what the level
    has."""
    whole = level.bandwidth_bytes_per_s or float("inf")
    if level.shared_by != "device":
        return total / whole / threads
    return np.maximum(total / whole, total / (level.core_bandwidth_bytes_per_s or whole) / threads)
