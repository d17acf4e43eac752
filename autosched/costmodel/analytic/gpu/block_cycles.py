"""Cycles of one thread block of a tensor part on a GPU: of each unit of its core, and of its chain of latencies.

A block computes slice after slice. Its units work beside each other, so together they take as long as the busiest, and
a share of the next one; what no other work hides (the way of the first slice, waits for late ones, the store of the
results) is in the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from autosched.costmodel.analytic.gpu.block_schedule import BlockSchedule
from autosched.costmodel.analytic.gpu.code_constants import GpuCode
from autosched.costmodel.analytic.gpu.fragments import beside_calls, calls_share, unhidden
from autosched.costmodel.analytic.gpu.gpu_traffic import (
    Column,
    Columns,
    column_of,
    least_memory_bytes,
    memory_bytes,
    sectors_written,
    share_traffic,
    stored_bits,
)
from autosched.costmodel.analytic.gpu.input_cycles import InputCycles, input_cycles
from autosched.costmodel.analytic.gpu.rates import DRAM_SHARE, issue_rate, l2_port, latency_cycles, memory_speed
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.gpu.operands.slice_copies import BULK, SYNC

TMA_CYCLES, QUEUE_CYCLES = 120.0, 1000.0
"""Of a TMA copy beyond the latency of memory and its own transfer: of TMA itself (600 cycles in all for a small box
while memory is idle, published microbenchmarks of Hopper), and in the queue of a memory that is busy all the time:
there slices of 30 KB came, with 4, 6 and 8 stages, every 520, 560 to 600 and 320 to 550 cycles on an H200, as if each
took 2,100."""
NEIGHBOUR_CYCLES = 180.0  # until another block of a cluster is told that a stage is empty (arXiv 2402.13499, SM to SM)


@dataclass(frozen=True)
class BlockCycles:
    """Columns of shape (rows,). `memory` and `fixup` are of all blocks together, in cycles of the device's memory."""

    schedule: BlockSchedule
    mma: Column
    smem: Column
    copies: Column  # part of `smem`: for what threads copy there
    l2: Column
    busy: Column  # all units together
    fill: Column  # until the first slice is there
    chain: Column  # latencies that nothing hides, the first slice's included
    store: Column
    exposed: Column  # share of the store that a persistent block waits for
    memory: Column
    fixup: Column  # of adding up shares of sums in a second grid


def block_cycles(
    nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode, *, least: bool = False
) -> BlockCycles:
    """Of each row, for code with these constants. With `least`, what memory moves and how results leave are taken at
    their best, and no decision is read that says only that."""
    s = BlockSchedule.of(nest, names, v, least=least)
    inputs = input_cycles(nest, names, v, target, code, s)
    units = _unit_cycles(nest.intrinsic, target, code, s, inputs)
    slices = np.where(inputs.staged, np.maximum(s.steps / s.slice_units, 1.0), s.steps / s.unroll)
    busy = _busy_cycles(nest.intrinsic, code, s, inputs, units, slices)
    if least:
        moved = np.full_like(s.blocks, least_memory_bytes(nest))
    else:
        moved = memory_bytes(nest, names, v, target, s.blocks, s.at_once, s.shares)
    memory = moved / memory_speed(target, "DRAM") / DRAM_SHARE
    path = _memory_path(nest.intrinsic, target, s, inputs, units, slices, busy, memory)
    shared_latency = latency_cycles(target).get("shared", 0.0)
    arrival = path + np.where(inputs.staged, shared_latency + 2 * code.barrier_cycles, 0.0)
    fill = arrival + np.where(s.copy == BULK, 0.0, units.l2 / slices)
    trip = arrival + np.where(s.cluster_blocks > 1, NEIGHBOUR_CYCLES, 0.0)
    group = latency_cycles(target).get("L2", 0.0) + code.barrier_cycles
    waits = _slice_waits(nest.intrinsic, code, s, inputs, slices, busy, path, trip, group)
    staged_chain = np.maximum(np.where(s.stages > 1, busy, units.mma + units.l2), busy) + waits
    call_cycles = nest.intrinsic.timing.get("latency", 32.0)
    direct_chain = busy + slices * trip + s.steps / s.unroll * call_cycles
    store, fixup = _output_cycles(nest, names, v, target, code, s, least=least)
    exposed = np.full_like(store, min(code.exposed_store.values()))
    return BlockCycles(
        schedule=s,
        mma=units.mma,
        smem=units.smem,
        copies=np.where(s.copy == BULK, 0.0, inputs.copied),
        l2=units.l2,
        busy=busy,
        fill=fill,
        chain=np.where(inputs.staged, staged_chain, direct_chain) + fill,
        store=store,
        exposed=exposed if least else _by_value(s.epilogue, code.exposed_store, 1.0),
        memory=memory,
        fixup=fixup,
    )


@dataclass(frozen=True)
class _UnitCycles:
    """Of the tensor cores (or the arithmetic of threads), of shared memory, and of the way from L2."""

    mma: Column
    smem: Column
    l2: Column


def _unit_cycles(
    intrinsic: Intrinsic, target: Target, code: GpuCode, s: BlockSchedule, inputs: InputCycles
) -> _UnitCycles:
    calls = s.workers * s.accumulators
    mma = calls * s.steps / (issue_rate(intrinsic, target) * calls_share(intrinsic, s.fragments, s.swizzle))
    promotions = np.where(s.promote > 0, s.steps / np.maximum(s.promote * s.slice_units, 1.0), 0.0)
    added = promotions * s.workers * s.accumulators * s.added
    mma = mma + (added + inputs.operations) / target.rates.get("scalar", 128.0)
    read = inputs.read_bytes / memory_speed(target, "shared")
    by_tma = s.copy == BULK
    smem = np.where(by_tma, np.maximum(inputs.filled, read), inputs.copied + read)  # TMA fills beside what is read
    started = _by_value(s.copy, code.copy_cycles, 0.0) * inputs.warp_copies
    # TMA keeps to the port of L2 itself, and meets no other limit of L2.
    return _UnitCycles(mma, smem, np.where(by_tma, inputs.tma, inputs.l2_bytes / l2_port(target) + started))


def _busy_cycles(
    intrinsic: Intrinsic, code: GpuCode, s: BlockSchedule, inputs: InputCycles, units: _UnitCycles, slices: Column
) -> Column:
    """Cycles of all units together, and of the barriers between slices."""
    longest = np.maximum(np.maximum(units.mma, units.smem), units.l2)
    shorter = np.minimum(units.mma, np.maximum(units.smem, units.l2))
    warpgroups = s.workers if intrinsic.scope == "warpgroup" else np.ones_like(s.workers)
    barrier = code.barrier_cycles * np.sqrt(np.maximum(warpgroups, 1.0))
    alone = longest + code.unhidden * shorter + slices * np.where(inputs.staged, barrier, 0.0)
    no_copies = s.warp_specialized | ~inputs.staged  # workers start none
    return np.where(no_copies, alone, beside_calls(s.fragments, code.together_share) * alone)


def _memory_path(
    intrinsic: Intrinsic,
    target: Target,
    s: BlockSchedule,
    inputs: InputCycles,
    units: _UnitCycles,
    slices: Column,
    busy: Column,
    memory: Column,
) -> Column:
    """Cycles from the start of a slice's copy to its last byte. Some of its lines come from memory, all as quickly as
    L2 serves many cores; a queue of memory is short until memory is nearly busy."""
    latency, by_tma = latency_cycles(target), s.copy == BULK
    idle = np.where(inputs.staged, latency.get("DRAM", 0.0), latency.get("L2", 0.0))
    idle = idle + np.where(by_tma, TMA_CYCLES, 0.0)
    cores = np.minimum(s.blocks, float(target.cores))
    slices_ahead = _slices_ahead(intrinsic, s)
    pace = np.maximum(busy / slices, idle / slices_ahead / np.maximum(s.at_once, 1.0))  # of slices, were memory idle
    queue = QUEUE_CYCLES * np.clip(memory * cores / s.blocks / slices / pace, 0.0, 1.0) ** 2
    transfer = np.maximum(units.l2, inputs.l2_bytes * cores / memory_speed(target, "L2")) / slices
    return idle + np.where(by_tma, queue + transfer, 0.0)


def _slices_ahead(intrinsic: Intrinsic, s: BlockSchedule) -> Column:
    """Slices that are on their way while one is used. Asynchronous calls are waited for one slice later, and only then
    is their stage empty, for a producer too."""
    in_use = 1.0 if intrinsic.asynchronous else np.where(s.warp_specialized, 0.0, 1.0)
    return np.maximum(s.stages - in_use, 1.0)


def _slice_waits(
    intrinsic: Intrinsic,
    code: GpuCode,
    s: BlockSchedule,
    inputs: InputCycles,
    slices: Column,
    busy: Column,
    path: Column,
    trip: Column,
    group_latency: float,
) -> Column:
    """Cycles in which a block with its core to itself waits for its slices. Copies take now more, now less: slices that
    arrive just in time on average are late now and then."""
    between = trip / _slices_ahead(intrinsic, s)
    behind = between - busy / slices
    late = slices * (behind + np.hypot(behind, code.arrival_spread * between)) / 2
    waits = np.where(s.stages > 1, late, slices * trip)
    # Loads by threads, with nothing computed beside them, whichever way slices of other inputs come.
    rounds = np.maximum(inputs.warp_copies / slices / s.warps / code.loads_in_flight, 1.0)
    waits = np.where(((s.copy == SYNC) & inputs.staged) | inputs.waited, slices * path * rounds, waits)
    waits = waits + np.where(inputs.grouped, slices * group_latency, 0.0)
    if intrinsic.scope == "warpgroup":
        each = code.slice_cycles + code.meeting_cycles * np.maximum(s.cluster_blocks - 1, 0.0)
        waits = waits + np.where(s.warp_specialized | ~inputs.staged, 0.0, slices * each)
    alone = s.steps * s.accumulators * intrinsic.timing.get("latency", 32.0)
    waits = waits + np.where(inputs.apart & inputs.staged, alone, 0.0)
    return waits + unhidden(intrinsic, s.fragments, s.copy, s.stages, slices, s.steps)


def _output_cycles(
    nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode, s: BlockSchedule, *, least: bool
) -> tuple[Column, Column]:
    """Cycles of a block's store (with `least` as if it filled its sectors), and those of a second grid that adds up the
    shares of all blocks: it has a block for each tile, whose threads take share after share."""
    out = nest.intrinsic.accumulator
    tile: Column = prod((column_of(v, names(f"tile_{a.name}")) for a in gpu_pair(nest)), start=np.ones_like(s.blocks))
    elements = tile * out.elements
    bits = np.where(s.second_grid, out.dtype.bits, stored_bits(nest))
    store = elements * bits / 8 / code.store_bytes
    if not least:
        store = store * np.where(s.epilogue == 0, code.scattered_store, 1.0)
        store = store * sectors_written(nest, s.epilogue, bits)
    sum_bytes = elements * out.dtype.bits / 8
    finishing = np.where(s.cluster_reduction, np.minimum(s.shares, s.workers), 1.0)  # blocks that finish one tile
    gathered = np.where(s.cluster_reduction, sum_bytes * (s.shares - 1.0) / code.peer_bytes, 0.0)
    traffic = share_traffic(nest, np.where(s.second_grid, s.shares, 1.0)) / 2
    written = traffic / memory_speed(target, "DRAM") / DRAM_SHARE
    share = sum_bytes / l2_port(target) + latency_cycles(target).get("L2", 0.0)
    added = np.where(s.second_grid, np.ceil(s.output_blocks / target.cores) * s.shares * share, 0.0)
    return (store + gathered) / finishing, written + np.maximum(written, added)


def _by_value(column: Column, values: Mapping[int, float], default: float) -> Column:
    """Each value of a decision by its number of cycles or its share."""
    return np.select([column == k for k in values], list(values.values()), default)
