"""What a grid of blocks takes of a GPU: its workers, registers and shared memory, and how many blocks a core holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from autosched.codegen.tree.kernel import Buffer, Kernel
from autosched.device.simulator.gpu.live_registers import most_live
from autosched.device.simulator.walk.facts import Facts, Level
from autosched.errors import AutoschedError
from autosched.machine.target import Target

OWN_REGISTERS = 30  # a thread's, beside its fragments
WARPS_OF_A_GROUP = 4  # PTX ISA: a warpgroup is four warps in a row
ROW_NUMBERS = 3
"""Dimensions of registers that hold a number of each row: workers, tiles, elements of a fragment."""
GRANULE = 8  # registers are given out in eights (CUDA occupancy calculator)


class RefusedError(AutoschedError):
    """A kernel that the device cannot launch; the message says which limit it breaks."""


@dataclass(frozen=True)
class GridLaunch:
    """One grid. `blocks` are its block loops, slowest first; `count` are its blocks, those of clusters one by one;
    `workers` is how many run side by side in a block; `spilled` registers of a thread do not fit."""

    blocks: tuple[Level, ...]
    count: float
    workers: float
    threads: int
    registers: int
    spilled: int
    shared_bytes: float
    at_once: int


def launch(kernel: Kernel, found: Facts, target: Target) -> GridLaunch:
    """The grid of one top-level statement, its block's resources, and how many blocks a core holds."""
    limits = target.limits
    lanes = limits["warp_threads"]
    loops = found.levels
    blocks = tuple(p for p in loops.values() if p.kind.startswith("block."))
    cluster = max((p.trips for p in loops.values() if p.kind == "cluster"), default=1.0)
    groups = max((p.trips for p in loops.values() if p.kind == "warpgroup"), default=0.0) * WARPS_OF_A_GROUP
    warps = groups or max((p.trips for p in loops.values() if p.kind == "warp"), default=0.0)
    threads = max((p.trips for p in loops.values() if p.kind == "thread"), default=0.0)
    wide = max((t.lane.width for t in found.touches if t.lane is not None), default=1)
    count = int(warps * lanes or threads or (lanes if wide > 1 else 1))
    together = lanes if warps or (not threads and wide > 1) else 1
    together *= WARPS_OF_A_GROUP if groups else 1
    workers = groups / WARPS_OF_A_GROUP or warps or threads or 1.0
    sizes: dict[str, int] = {}
    for name in sorted(found.buffers):
        buffer = kernel.buffers[name]
        if buffer.scope != "register":
            continue
        elements = buffer.elements
        if name in found.owned:
            elements = ceil(elements / workers / cluster)
        sizes[name] = ceil(elements * buffer.dtype.bits / (32 * together))
    rows = any(kernel.buffers[n].fragment is not None for n in sizes)
    held = most_live(kernel.main.body, sizes) if rows else sum(sizes.values())
    if rows:
        held = _of_rows(kernel, sizes, held, limits.get("registers_per_thread", held))
    held_together = [b for n, b in kernel.buffers.items() if b.scope == "shared" and n in found.buffers]
    shared = sum(b.elements * b.dtype.bits / 8 for b in held_together) / cluster
    _within(count, limits.get("threads_per_block"), "threads in a block")
    if not rows:
        _within(held, limits.get("registers_per_thread"), "registers a thread")
    _within(shared, limits.get("shared_bytes"), "bytes of shared memory in a block")
    each = ceil(count / lanes)
    of_thread = limits.get("registers_per_thread", 255)
    taken = min(held, of_thread) if rows else held
    _within(taken * each * lanes, limits.get("registers_per_core"), "registers in a block")
    most = min(of_thread, limits.get("registers_per_core", 65536) // (each * lanes))
    registers = min(-(-(held + OWN_REGISTERS) // GRANULE) * GRANULE, most)
    spilled = max(0, held + OWN_REGISTERS - most)
    fits = [limits.get("blocks_per_core", 32), limits.get("warps_per_core", 64) // each]
    fits.append(limits.get("registers_per_core", 65536) // (registers * each * lanes))
    if shared:
        on_core = target.memory("shared").bytes
        fits.append(int(on_core // (shared + limits.get("shared_bytes_reserved_per_block", 0))))
    number = prod((p.trips for p in blocks), start=cluster)
    return GridLaunch(blocks, number, workers, count, registers, spilled, shared, max(1, min(fits)))


def _of_rows(kernel: Kernel, sizes: Mapping[str, int], held: int, most: int) -> int:
    """Registers of a thread that holds rows. Where they seem more than there are (`most`), elements of a row that are
    alike in a thread count once; more than that a compiler spills: what it needs at one point is known from above."""
    if held <= most:
        return held
    alike = {n: ceil(size * _different(kernel.buffers[n])) for n, size in sizes.items()}
    return min(most_live(kernel.main.body, alike), 2 * most)


def _different(buffer: Buffer) -> float:
    """The share of a thread's elements that differ: of one number a row it has those of several columns."""
    fragment = buffer.fragment
    if fragment is None or len(buffer.shape) != ROW_NUMBERS:
        return 1.0
    mine = np.flatnonzero(fragment.owners[0] == 0)
    wide = fragment.shape[1]
    return max(len(np.unique(mine // wide)), len(np.unique(mine % wide))) / len(mine)


def _within(value: float, limit: int | None, what: str) -> None:
    if limit is not None and value > limit:
        raise RefusedError(f"{value:,.0f} {what}; the target allows {limit:,}")
