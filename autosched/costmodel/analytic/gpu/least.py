"""Lower bounds of `gpu_clock` for a nest on a GPU, by its tiles, its slices and their sources alone.

How slices are copied, how many are in flight, how blocks are numbered and grouped and how results leave are taken at
their best, each by itself. So one number stands for hundreds of rows, and the search leaves out those that cannot be
among the fastest before the clock looks at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import add

import numpy as np

from autosched.costmodel.analytic.gpu.block_schedule import InputTile, column_or, split_shares
from autosched.costmodel.analytic.gpu.code_constants import GENERATED, GpuCode
from autosched.costmodel.analytic.gpu.fragments import FLOAT_SHARE
from autosched.costmodel.analytic.gpu.gpu_clock import CLUSTER_SECONDS, COPIES, LAUNCH_SECONDS, Terms
from autosched.costmodel.analytic.gpu.gpu_traffic import (
    LINE_BYTES,
    Column,
    Columns,
    column_of,
    least_memory_bytes,
    lines,
    sectors,
    share_traffic,
    stored_bits,
)
from autosched.costmodel.analytic.gpu.input_cycles import InputCycles, fragment_bytes
from autosched.costmodel.analytic.gpu.rates import (
    DRAM_SHARE,
    issue_rate,
    l2_port,
    latency_cycles,
    memory_speed,
    tma_cycles,
)
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.nest import Nest
from autosched.tiling.space.values import rows_of
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.gpu.block_tile import workers_name
from autosched.tiling.steps.gpu.operands.computed_slices import fetched_raw, source_bytes
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES
from autosched.tiling.steps.gpu.operands.slice_copies import STAGES
from autosched.tiling.steps.gpu.split_k import GATHERED, STREAM


def gpu_least(nest: Nest, names: StepNames, v: Columns, target: Target) -> Terms:
    """Seconds per row, each term and `total` at most those of `gpu_clock.gpu_tensor`. Reads the decisions on tiles,
    workers, slices, their sources, and how blocks share a reduction."""
    code = GENERATED
    cycle, cores = 1.0 / target.clock_hz, float(target.cores)
    output_blocks = column_of(v, names("blocks"))
    one = np.ones_like(output_blocks)
    split, slices = column_or(nest, names, v, "split", one), column_or(nest, names, v, "slices", one)
    stream = split == STREAM
    shares = split_shares(split, slices)
    blocks = np.where(stream, 1.0, output_blocks * shares)
    units = float(prod(a.units for a in nest.reduction))
    # Blocks that share all slices evenly are no more than cores.
    steps = units * np.where(stream, np.maximum(output_blocks / cores, 1.0), 1.0 / shares)
    block = _least_block(nest, names, v, target, code, steps)
    waves = np.ceil(blocks / cores)
    dram = least_memory_bytes(nest) / memory_speed(target, "DRAM") / DRAM_SHARE * cycle
    several = shares > 1
    sums_bytes = _sums_bytes(nest, names, v)
    store_sums = sums_bytes / code.store_bytes
    store = store_sums * stored_bits(nest) / nest.intrinsic.accumulator.dtype.bits

    def total(store: Column, launches: Column, fixup: Column) -> Column:
        exposed = min(0.5, *code.exposed_store.values())
        busy = waves * (block.busy + np.where(waves > 1, exposed, 1.0) * store)
        on_core = np.maximum(busy, block.chain + store) * cycle
        hidden = code.unhidden * np.minimum(on_core, dram)
        return np.asarray(np.maximum(on_core, dram) + hidden + launches + fixup * cycle)

    launches = np.where(several, 2.0, 1.0) * LAUNCH_SECONDS
    written = np.where(several, share_traffic(nest, shares) / 2 / memory_speed(target, "DRAM") / DRAM_SHARE, 0.0)
    found, least_store = total(np.where(several, store_sums, store), launches, written), store
    if names("gather") in v:  # or the blocks of a cluster add up their shares, each a part of the tile
        together = np.isin(split, GATHERED)
        workers: Column = prod((column_of(v, workers_name(nest, names, a)) for a in gpu_pair(nest)), start=one)
        finishing = np.where(together, np.minimum(shares, workers), 1.0)
        gathered = (store + sums_bytes * (shares - 1.0) / code.peer_bytes) / finishing
        clustered = total(gathered, LAUNCH_SECONDS + CLUSTER_SECONDS * one, np.zeros_like(one))
        found = np.where(together, np.minimum(found, clustered), found)
        launches, least_store = np.where(together, LAUNCH_SECONDS, launches), store / finishing
    each = np.maximum(blocks / cores, 1.0)
    return {
        "mma": block.mma * each * cycle,
        "shared": block.smem * each * cycle,
        COPIES: np.zeros_like(one),
        "l2": np.zeros_like(one),
        "dram": np.full_like(one, dram),
        "latency": block.chain * cycle,
        "store": least_store * each * cycle,
        "launch": launches,
        "total": found,
    }


@dataclass(frozen=True)
class _LeastBlock:
    """Cycles of one block, shape (rows,)."""

    mma: Column
    smem: Column
    busy: Column  # all units together
    chain: Column  # with the way of the first slice from memory


def _least_block(
    nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode, steps: Column
) -> _LeastBlock:
    """Of a block of so many depth units."""
    intrinsic, one = nest.intrinsic, np.ones_like(steps)
    along = [column_of(v, workers_name(nest, names, a)) for a in gpu_pair(nest)]
    workers: Column = prod(along, start=one)
    accumulators = column_of(v, names("accumulators"))
    floats = intrinsic.scope == "thread" and intrinsic.accumulator.dtype.is_float
    reached = issue_rate(intrinsic, target) * (max(FLOAT_SHARE.values()) if floats else 1.0)
    mma = workers * accumulators * steps / reached
    tiles = [InputTile.of(nest, names, v, o) for o in intrinsic.inputs]
    fragments = (fragment_bytes(nest, tile, target, accumulators, along) for tile in tiles)
    of_inputs = (
        _least_input(nest, names, v, target, code, steps, tile, workers, loaded)
        for tile, loaded in zip(tiles, fragments, strict=True)
    )
    inputs = reduce(add, of_inputs)
    read = inputs.read_bytes / memory_speed(target, "shared")
    smem, l2 = inputs.copied + read, inputs.l2_bytes / l2_port(target)
    if target.bulk_copies:
        smem, l2 = np.minimum(smem, np.maximum(inputs.filled, read)), np.minimum(l2, inputs.tma)
    slice_units = column_of(v, names.block(nest.depth)) if nest.depth is not None else one
    slices = np.maximum(steps / slice_units, 1.0)
    longest, shorter = np.maximum(np.maximum(mma, smem), l2), np.minimum(mma, np.maximum(smem, l2))
    barrier = code.barrier_cycles * np.sqrt(np.maximum(workers if intrinsic.scope == "warpgroup" else one, 1.0))
    busy = longest + code.unhidden * shorter + np.where(inputs.staged, slices * barrier, 0.0)
    latency = latency_cycles(target)
    idle = np.where(inputs.staged, latency.get("DRAM", 0.0), latency.get("L2", 0.0))
    arrival = idle + np.where(inputs.staged, latency.get("shared", 0.0) + 2 * code.barrier_cycles, 0.0)
    slice_bytes = sum((_staged_bytes(nest, tile) for tile in tiles), start=np.zeros_like(steps))
    ahead = _most_slices_ahead(intrinsic, target, slice_bytes * slice_units)
    trips = np.where(inputs.staged, slices * np.minimum(idle, arrival / ahead), 0.0)
    chain = np.maximum(busy, trips) + arrival + np.where(inputs.staged, l2 / slices, 0.0)
    return _LeastBlock(mma, smem, busy, chain)


def _least_input(
    nest: Nest,
    names: StepNames,
    v: Columns,
    target: Target,
    code: GpuCode,
    steps: Column,
    tile: InputTile,
    workers: Column,
    loaded: Column,
) -> InputCycles:
    """What one input asks for at least, of which `loaded` bytes go to each worker for a depth unit."""
    shared, operand = tile.source > 0, tile.operand.name
    staged_bytes = steps * shared * tile.block_bytes
    touched = sectors(nest, operand)
    row = np.maximum(column_or(nest, names, v, f"row_{operand}", np.ones_like(steps)), CHUNK_BYTES)
    straight = tile.worker_bytes * max(touched, lines(nest, operand))
    asked = 1.0 - code.multicast
    narrow = source_bytes(nest, operand) * 8 / tile.operand.dtype.bits
    fetched = np.where(shared, tile.block_bytes * asked, tile.block_bytes * min(touched, code.most_fetched))
    return InputCycles(
        filled=staged_bytes / memory_speed(target, "shared"),
        copied=2.0 * staged_bytes / LINE_BYTES,
        read_bytes=steps * workers * np.where(shared, loaded, straight * narrow),
        tma=staged_bytes * asked * tma_cycles(row),
        warp_copies=np.zeros_like(steps),
        l2_bytes=steps * fetched * narrow,
        operations=np.zeros_like(steps),
        staged=shared,
        waited=np.zeros_like(shared),
        grouped=np.zeros_like(shared),
        apart=np.zeros_like(shared),
    )


def _staged_bytes(nest: Nest, tile: InputTile) -> Column:
    """Bytes in shared memory that a depth unit of an input takes at least: of what a slice is computed from, if that is
    fetched ahead."""
    share = 1.0
    if fetched_raw(nest, tile.operand.name):
        share = min(share, source_bytes(nest, tile.operand.name) * 8 / tile.operand.dtype.bits)
    return (tile.source > 0) * tile.block_bytes * share


def _most_slices_ahead(intrinsic: Intrinsic, target: Target, slice_bytes: Column) -> Column:
    """Slices on their way while one is used, with as many stages as shared memory has room for."""
    in_use = 1.0 if intrinsic.asynchronous else 0.0
    room = np.floor(target.limits.get("shared_bytes", 0) / np.maximum(slice_bytes, 1.0))
    return np.maximum(np.minimum(room, float(max(STAGES))) - in_use, 1.0)


def _sums_bytes(nest: Nest, names: StepNames, v: Columns) -> Column:
    """Bytes of the sums of a block's tile."""
    out = nest.intrinsic.accumulator
    tile: Column = prod((column_of(v, names(f"tile_{a.name}")) for a in gpu_pair(nest)), start=np.ones(rows_of(v)))
    return np.asarray(tile * out.elements * out.dtype.bits / 8)
