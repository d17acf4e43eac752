"""What a nest on a GPU takes at least, by its tiles, its slices and their sources alone: a lower bound of `gpu_clock`.

How slices are copied, how many are in flight, how blocks are numbered and grouped and how results leave are taken at
their best, each by itself. So one number stands for hundreds of rows, and those that cannot be among the fastest are
left out before the clock looks at them.
"""

from __future__ import annotations

from math import prod

import numpy as np

from autosched.costmodel.analytic.gpu.code_constants import GENERATED, GpuCode
from autosched.costmodel.analytic.gpu.fragments import FLOAT_SHARE, lanes_share
from autosched.costmodel.analytic.gpu.gpu_clock import (
    CLUSTER_SECONDS,
    DRAM_SHARE,
    L2_PORT_BYTES,
    LAUNCH_SECONDS,
    Terms,
    engine_cycles,
    issue_rate,
    memory_speed,
)
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
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.space.values import rows_of
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.gpu.block_tile import workers_name
from autosched.tiling.steps.gpu.operand_paths import BULK_COPIES, CHUNK_BYTES, has_any
from autosched.tiling.steps.gpu.operand_sources import DESCRIPTOR
from autosched.tiling.steps.gpu.slice_copies import STAGES
from autosched.tiling.steps.gpu.split_k import GATHERED, STREAM


def gpu_least(nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode = GENERATED) -> Terms:
    """Seconds per row, each term and `total` at most those of `gpu_clock.gpu_tensor`. Reads the decisions on tiles,
    workers, slices, their sources, and how a reduction is shared out."""
    cycle, cores = 1.0 / target.clock_hz, float(target.cores)
    tiles = column_of(v, names("blocks"))
    one = np.ones_like(tiles)

    def column(name: str) -> Column:
        return column_of(v, names(name)) if nest.depth is not None and names(name) in v else one

    split, slices = column("split"), column("slices")
    stream = split == STREAM
    shares = np.where(stream, np.minimum(slices, 2.0), np.maximum(split, 1.0))
    blocks = np.where(stream, 1.0, tiles * shares)
    whole = float(prod(a.units for a in nest.reduction))
    # Blocks that share all slices evenly are no more than cores.
    steps = whole * np.where(stream, np.maximum(tiles / cores, 1.0), 1.0 / shares)
    each = np.maximum(blocks / cores, 1.0)
    mma, smem, busy, chain = _block(nest, names, v, target, code, steps)
    turns = np.ceil(blocks / cores)
    dram = least_memory_bytes(nest) / memory_speed(target, "DRAM") / DRAM_SHARE * cycle
    several = shares > 1
    elsewhere = _sums_bytes(nest, names, v) / code.store_bytes
    store = elsewhere * stored_bits(nest) / nest.intrinsic.accumulator.dtype.bits
    elsewhere = np.where(several, elsewhere, store)
    written = np.where(several, share_traffic(nest, shares) / 2 / memory_speed(target, "DRAM") / DRAM_SHARE, 0.0)

    def total(store: Column, launches: Column, fixup: Column) -> Column:
        exposed = min(0.5, *code.exposed_store.values())
        on_core = np.maximum(turns * (busy + np.where(turns > 1, exposed, 1.0) * store), chain + store) * cycle
        hidden = code.unhidden * np.minimum(on_core, dram)
        return np.asarray(np.maximum(on_core, dram) + hidden + launches + fixup * cycle)

    launches = np.where(several, 2.0, 1.0) * LAUNCH_SECONDS
    found, least_store = total(elsewhere, launches, written), store
    if names("gather") in v:  # or the blocks of a cluster add up their shares, each a part of the tile
        together = np.isin(split, GATHERED)
        workers: Column = prod((column_of(v, workers_name(nest, names, a)) for a in gpu_pair(nest)), start=one)
        finishing = np.where(together, np.minimum(shares, workers), 1.0)
        gathered = (store + _sums_bytes(nest, names, v) * (shares - 1.0) / code.peer_bytes) / finishing
        beside = total(gathered, LAUNCH_SECONDS + CLUSTER_SECONDS * one, np.zeros_like(one))
        found = np.where(together, np.minimum(found, beside), found)
        launches, least_store = np.where(together, LAUNCH_SECONDS, launches), store / finishing
    return {
        "mma": mma * each * cycle,
        "shared": smem * each * cycle,
        "l2": np.zeros_like(one),
        "dram": np.full_like(one, dram),
        "latency": chain * cycle,
        "store": least_store * each * cycle,
        "launch": launches,
        "total": found,
    }


def _block(
    nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode, steps: Column
) -> tuple[Column, Column, Column, Column]:
    """Cycles of one block of so many `steps`: of its tensor cores, shared memory and all units together, and with the
    first slice's way from memory."""
    intrinsic, pair = nest.intrinsic, gpu_pair(nest)
    one, none = np.ones_like(steps), np.zeros_like(steps)
    along = [column_of(v, workers_name(nest, names, a)) for a in pair]
    workers: Column = prod(along, start=one)
    accumulators = column_of(v, names("accumulators"))
    floats = intrinsic.scope == "thread" and intrinsic.accumulator.dtype.is_float
    reached = issue_rate(intrinsic, target) * (max(FLOAT_SHARE.values()) if floats else 1.0)
    mma = workers * accumulators * steps / reached
    copied, read, asked, engine, unique, staged, slice_bytes = (none.copy() for _ in range(7))
    for o in intrinsic.inputs:
        size = o.elements * o.dtype.bits / 8
        own = [a for a in pair if a in nest.operand_axes(o.name)]
        mine: Column = prod((column_of(v, names.register(a)) for a in own), start=np.full_like(steps, size))
        tile: Column = prod((column_of(v, names(f"tile_{a.name}")) for a in own), start=np.full_like(steps, size))
        name = names(f"stage_{o.name}")
        source = column_of(v, name) if nest.depth is not None and name in v else none
        shared = source > 0
        spread = sectors(nest, o.name)
        taken = np.where(source == DESCRIPTOR, accumulators * size, mine * lanes_share(intrinsic, pair, own, along))
        copied += steps * shared * tile / memory_speed(target, "shared")
        asked += 2.0 * steps * shared * tile / LINE_BYTES
        read += steps * workers * np.where(shared, taken, mine * max(spread, lines(nest, o.name)))
        row = column_of(v, names(f"row_{o.name}")) if nest.depth is not None and names(f"row_{o.name}") in v else one
        engine += steps * shared * tile * (1.0 - code.multicast) * engine_cycles(np.maximum(row, CHUNK_BYTES))
        unique += steps * np.where(shared, tile * (1.0 - code.multicast), tile * min(spread, code.most_fetched))
        staged = np.maximum(staged, shared)
        slice_bytes += shared * tile
    read = read / memory_speed(target, "shared")
    smem, l2 = asked + read, unique / min(L2_PORT_BYTES, memory_speed(target, "L2") / target.cores)
    if has_any(target, BULK_COPIES):
        smem, l2 = np.minimum(smem, np.maximum(copied, read)), np.minimum(l2, engine)
    depth = column_of(v, names.block(nest.depth)) if nest.depth is not None else one
    count = np.maximum(steps / depth, 1.0)
    longest, shorter = np.maximum(np.maximum(mma, smem), l2), np.minimum(mma, np.maximum(smem, l2))
    barrier = code.barrier_cycles * np.sqrt(np.maximum(workers if intrinsic.scope == "warpgroup" else one, 1.0))
    busy = longest + code.unhidden * shorter + np.where(staged > 0, count * barrier, 0.0)
    latency = {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}
    idle = np.where(staged > 0, latency.get("DRAM", 0.0), latency.get("L2", 0.0))
    arrival = idle + np.where(staged > 0, latency.get("shared", 0.0) + 2 * code.barrier_cycles, 0.0)
    held = 1.0 if intrinsic.asynchronous else 0.0
    room = np.floor(target.limits.get("shared_bytes", 0) / np.maximum(slice_bytes * depth, 1.0))
    ahead = np.maximum(np.minimum(room, float(max(STAGES))) - held, 1.0)
    trips = np.where(staged > 0, count * np.minimum(idle, arrival / ahead), 0.0)
    return mma, smem, busy, np.maximum(busy, trips) + arrival + np.where(staged > 0, l2 / count, 0.0)


def _sums_bytes(nest: Nest, names: StepNames, v: Columns) -> Column:
    """Bytes of the sums of a block's tile."""
    out = nest.intrinsic.accumulator
    tile: Column = prod((column_of(v, names(f"tile_{a.name}")) for a in gpu_pair(nest)), start=np.ones(rows_of(v)))
    return np.asarray(tile * out.elements * out.dtype.bits / 8)
