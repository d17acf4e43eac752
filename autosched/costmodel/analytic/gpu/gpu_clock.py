"""The analytic clock of a nest on a GPU: seconds of each row, term by term, vectorised; no measurement.

A core (an SM) runs as many blocks at once as fit; together they take as long as the busiest of its units, or as long
as one block's chain of latencies where too few blocks are there to hide it. Blocks come in waves, the last one
partial. The equations are a simplification of published models of GEMM on NVIDIA GPUs (the roofline of Pruner, arXiv
2402.02361, and of DeepGEMM's heuristics); constants that come from neither a target nor a manual are named below with
their source.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.code_constants import GENERATED, GpuCode
from autosched.costmodel.analytic.gpu.fragments import beside_calls, calls_share, lanes_share, unhidden
from autosched.costmodel.analytic.gpu.gpu_traffic import (
    LINE_BYTES,
    Column,
    Columns,
    column_of,
    further_lines,
    lines,
    memory_bytes,
    sectors,
    sectors_written,
    share_traffic,
    stored_bits,
)
from autosched.ir.value import walk
from autosched.logic import free_vars
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import Plan, ScalarPart
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.gpu.block_tile import workers_name
from autosched.tiling.steps.gpu.grid_order import cluster_kinds, grouped_cores
from autosched.tiling.steps.gpu.operand_paths import CHUNK_BYTES
from autosched.tiling.steps.gpu.operand_sources import DESCRIPTOR
from autosched.tiling.steps.gpu.slice_copies import ASYNC, BULK, SYNC
from autosched.tiling.steps.gpu.split_k import CLUSTER, STREAM

TERMS = ("mma", "shared", "l2", "dram", "latency", "store", "launch")
"""Seconds by name, each as if nothing else took time; `total` combines them."""

# Of the device, beside what its target states: measured by others on the parts themselves.
MMA_SYNC_SHARE = 0.65  # of the tensor peak that mma.sync reaches on Hopper (arXiv 2402.13499)
WGMMA_SHARE = {8: 0.21, 16: 0.38, 32: 0.63, 64: 0.95, 128: 0.96, 256: 0.96}
"""Of the tensor peak that wgmma reaches by its n, both operands in shared memory (arXiv 2402.13499, table 9)."""
L2_PORT_BYTES = 64.0  # a cycle that one SM takes from L2 at most (DeepGEMM's performance model)
CLUSTER_SECONDS = 0.7e-6
"""Of a launch in clusters: 0.6 to 0.8 us more than the same row without (e4m3 1024³, n = 64 to 128) on an H200, and
0.6 (bf16 1024³) on an H100, of which 0.5 are the meeting of a cluster's blocks before they begin."""
DRAM_SHARE = 0.9  # of the datasheet's bandwidth that copies reach: 4.3 of 4.8 TB/s on an H200
ENGINE_CYCLES, QUEUE_CYCLES = 120.0, 1000.0
"""Of a bulk copy beyond the latency of memory and its own transfer: of the engine (600 cycles in all for a small box
while memory is idle, published microbenchmarks of Hopper), and in the queue of a memory that is busy all the time:
there slices of 30 KB came, with 4, 6 and 8 stages, every 520, 560 to 600 and 320 to 550 cycles on an H200, as if each
took 2,100."""
ROW_CYCLES, ROW_BYTE_CYCLES, MOST_ROW_CYCLES = 0.4, 0.6 / 16, 2.0
"""Of the copy engine for a row of a box: a part, and so much for each byte, up to rows of 128 bytes. On an H200 rows of
16, 32 and 64 bytes came at 16, 20 and 31 bytes a cycle (chosen with 200 measured rows of a 4096³ bf16 product in view,
as the cycles of copies and slices in `code_constants`)."""
FURTHER_LINE_CYCLES = 3.0
"""Of the copy engine for each line that a row of a box touches beyond those that it fills. On an H100 slices of 192x192
tiles of 3000³ (rows of 6,000 bytes) came every 1,890 cycles without a cluster, and every 1,520 where two blocks shared
one operand; those of 3008³ and 3072³ as fast as products take them, with clusters and without."""
NEIGHBOUR_CYCLES = 180.0  # until another block of a cluster is told that a stage is empty (arXiv 2402.13499, SM to SM)
SCALAR_LATENCY = 4.0  # cycles until a thread may use its last result (arXiv 2402.13499)
LAUNCH_SECONDS = 2e-6  # of an empty kernel in a graph (a round figure: 1024³ in fp8 takes 4.6 us in all)

# Of the workload: random numbers make the tensor pipe draw more power than zeros, and the clock goes down with its use.
THROTTLED = 0.93  # of the clock at full use on random data (13 % less than on zeros, on an H200)
THROTTLE_FROM = 0.6  # use of the tensor pipe from which on it does

Terms = dict[str, npt.NDArray[np.float64]]


def gpu_tensor(nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode = GENERATED) -> Terms:
    """Seconds per row of a tensor part laid out by the GPU steps, printed by a code generator with these constants."""
    b = _block(nest, names, v, target, code)
    cycle = 1.0 / target.clock_hz
    crowded = np.maximum(b.cluster, np.where(b.elsewhere, 1.0, b.shares)) > 2
    cores = np.where(crowded, float(grouped_cores(target.cores)), float(target.cores))
    dram = b.memory * cycle

    def wave(count: Column) -> Column:
        """Cycles of a core that runs so many blocks side by side."""
        alone: Column = np.where(count > 0, b.chain + b.store, 0.0)
        return np.maximum(count * (b.busy + np.where(count > 1, 0.5, 1.0) * b.store), alone)

    full = np.floor(b.blocks / (cores * b.at_once))
    rest = np.ceil((b.blocks - full * cores * b.at_once) / cores)
    once = full * wave(b.at_once) + wave(rest)
    resident = b.resident * b.cluster
    rounds = np.ceil(b.tiles * b.cluster * b.shares / np.maximum(resident, 1.0))
    persistent = rounds * (np.maximum(b.busy, b.chain - b.fill) + b.exposed * b.store) + b.fill + b.store
    on_core = np.where(b.persistent, persistent, once)
    use = np.clip(b.mma * b.blocks / np.minimum(b.blocks, cores) / np.maximum(on_core, 1.0) - THROTTLE_FROM, 0.0, None)
    on_core = on_core / (1.0 - (1.0 - THROTTLED) * use / (1.0 - THROTTLE_FROM)) * cycle
    on_core = np.where(b.cluster > 1, code.cluster_share, 1.0) * on_core
    each = b.blocks / np.minimum(b.blocks, cores) * cycle  # of blocks on the busiest core, were they spread evenly
    launches = np.where(b.elsewhere, 2.0, 1.0) * LAUNCH_SECONDS
    launches = launches + np.where((b.cluster > 1) | (b.shares > 1) & ~b.elsewhere, CLUSTER_SECONDS, 0.0)
    fixup = b.fixup * cycle
    return {
        "mma": b.mma * each,
        "shared": b.smem * each,
        "l2": b.l2 * each,
        "dram": dram + fixup,
        "latency": b.chain * np.ceil(b.blocks / (cores * b.at_once)) * cycle,
        "store": b.store * each,
        "launch": launches,
        "total": np.maximum(on_core, dram) + code.unhidden * np.minimum(on_core, dram) + launches + fixup,
    }


@dataclass(frozen=True)
class _Block:
    """What one block takes, in cycles of its core: of each unit, all units together (`busy`), the first slice (`fill`),
    the chain of latencies that nothing hides, its store; how many blocks there are; and of all of them what they take
    of `memory`, and what shares of sums take that a second grid adds up (`fixup`)."""

    mma: Column
    smem: Column
    l2: Column
    busy: Column
    fill: Column
    chain: Column
    store: Column
    exposed: Column
    blocks: Column
    tiles: Column
    shares: Column
    resident: Column
    cluster: Column
    at_once: Column
    memory: Column
    fixup: Column
    persistent: npt.NDArray[np.bool_]
    elsewhere: npt.NDArray[np.bool_]  # whether shares of a sum are added up by a second grid


def _block(nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode) -> _Block:
    intrinsic, pair = nest.intrinsic, gpu_pair(nest)
    blocks, at_once = column_of(v, names("blocks")), column_of(v, names("blocks_at_once"))
    one, none = np.ones_like(blocks), np.zeros_like(blocks)

    def column(name: str, default: Column) -> Column:
        return column_of(v, names(name)) if nest.depth is not None and names(name) in v else default

    along = [column_of(v, workers_name(nest, names, a)) for a in pair]
    workers: Column = prod(along, start=one)
    accumulators, slices = column_of(v, names("accumulators")), column("slices", one)
    split, cluster, of_cluster = column("split", one), column("cluster", none), column("cluster_blocks", one)
    tiles, resident = column("tiles", blocks), column("resident", blocks)
    stream = split == STREAM
    shares = np.where(stream, np.minimum(slices, 2.0), np.maximum(split, 1.0))
    steps = float(prod(a.units for a in nest.reduction)) * np.where(stream, tiles / resident, 1.0 / shares)
    tiled = blocks
    blocks = np.where(stream, resident * of_cluster, blocks * shares)
    persistent = (column("persistent", none) > 0) & ~stream
    unroll = column("unroll", one)
    depth_block = column_of(v, names.block(nest.depth)) if nest.depth else one
    latency = {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}

    fragments = column("fragments", none)
    reached = issue_rate(intrinsic, target) * calls_share(intrinsic, fragments, column("swizzle", none))
    mma = workers * accumulators * steps / reached
    copied, read, unique, asked = (none.copy() for _ in range(4))
    staged, moved, engine = none.copy(), none.copy(), none.copy()
    copy = column("copy", none)
    for o in intrinsic.inputs:
        size = o.elements * o.dtype.bits / 8
        own = [a for a in pair if a in nest.operand_axes(o.name)]
        mine: Column = prod((column_of(v, names.register(a)) for a in own), start=np.full_like(blocks, size))
        tile: Column = prod((column_of(v, names(f"tile_{a.name}")) for a in own), start=np.full_like(blocks, size))
        source = column(f"stage_{o.name}", none)
        shared = source > 0
        spread = sectors(nest, o.name)
        common: Column = one
        for k, kind in enumerate(cluster_kinds(pair), 1):
            receivers = prod(n for a, n in zip(pair, kind, strict=True) if a not in own)
            common = np.where(cluster == k, float(receivers), common)
        ways = np.maximum(column(f"ways_{o.name}", one), 1.0)
        taken = np.where(source == DESCRIPTOR, accumulators * size, mine * lanes_share(intrinsic, pair, own, along))
        width = np.maximum(column("vector", none), o.dtype.bits / 8)
        of_warp = width * target.limits.get("warp_threads", 32)
        accesses = steps * shared * tile / of_warp
        moved += accesses
        # A warp copies neighbours along a row: lines that it asks memory for, and turns of the banks where parts of a
        # row (16 bytes, or swizzled spans) lie whole multiples of 128 bytes apart.
        length = np.maximum(column(f"row_{o.name}", none), CHUNK_BYTES)
        packed = np.where(source == DESCRIPTOR, np.maximum(column("swizzle", none), CHUNK_BYTES), length)
        crowd = np.clip(np.minimum(length, LINE_BYTES) / packed, 1.0, np.maximum(width / 2, 2.0))
        wave = np.maximum(of_warp / LINE_BYTES, 1.0)
        filled = np.where(copy == ASYNC, code.fill_turns, 1.0)
        asked += accesses * (np.maximum(wave, of_warp / length) + wave * crowd * filled)
        copied += steps * shared * tile / memory_speed(target, "shared")
        span = np.where(source == DESCRIPTOR, CHUNK_BYTES, np.maximum(column(f"row_{o.name}", none), CHUNK_BYTES))
        span = np.where(column("swizzle", none) > 0, column("swizzle", none), span)
        asks = 1.0 - code.multicast * (1.0 - 1.0 / common)  # of the slices that come, where others ask for some of them
        # Blocks that run together find whole lines asked for already, not parts of lines: those multicast saves.
        parts = FURTHER_LINE_CYCLES * further_lines(nest, o.name, span) / common
        engine += steps * shared * tile * (engine_cycles(span) * asks + parts / span)
        read += steps * workers * np.where(shared, taken * ways, mine * max(spread, lines(nest, o.name)))
        unique += steps * np.where(shared, tile * asks, tile * min(spread, code.most_fetched))
        staged = np.maximum(staged, shared)
    port = min(L2_PORT_BYTES, memory_speed(target, "L2") / target.cores)
    read = read / memory_speed(target, "shared")
    smem = np.where(copy == BULK, np.maximum(copied, read), asked + read)  # the engine fills beside what is read
    started = np.select([copy == k for k in code.copy_cycles], list(code.copy_cycles.values()), 0.0) * moved
    by_hand = unique / port + started
    l2 = np.where(copy == BULK, engine, by_hand)  # which keeps to the port, and is met by no other limit of L2
    promote = column("promote", none)
    emptied = np.where(promote > 0, steps / np.maximum(promote * depth_block, 1.0), 0.0)
    mma = mma + emptied * workers * accumulators * intrinsic.accumulator.elements / target.rates.get("scalar", 128.0)

    count = np.where(staged > 0, np.maximum(steps / depth_block, 1.0), steps / unroll)
    longest = np.maximum(np.maximum(mma, smem), l2)
    shorter = np.minimum(mma, np.maximum(smem, l2))
    stages, roles = column("stages", one), column("roles", none) > 0
    barrier = code.barrier_cycles * np.sqrt(np.maximum(workers if intrinsic.scope == "warpgroup" else one, 1.0))
    apart = longest + code.unhidden * shorter + count * np.where(staged > 0, barrier, 0.0)
    busy = np.where(roles | (staged == 0), apart, beside_calls(fragments, code.together_share) * apart)
    # Products that run on are waited for one slice later, and only then is their stage empty, for a producer too.
    held = 1.0 if intrinsic.asynchronous else np.where(roles, 0.0, 1.0)
    ahead = np.maximum(stages - held, 1.0)
    # A slice is there with its last byte. Some of its lines come from memory, all as quickly as L2 serves many cores.
    busiest = np.minimum(blocks, float(target.cores))
    memory = memory_bytes(nest, names, v, target, blocks, at_once, shares) / memory_speed(target, "DRAM") / DRAM_SHARE
    idle = np.where(staged > 0, latency.get("DRAM", 0.0), latency.get("L2", 0.0))
    idle = idle + np.where(copy == BULK, ENGINE_CYCLES, 0.0)
    pace = np.maximum(busy / count, idle / ahead / np.maximum(at_once, 1.0))  # of slices, were memory idle
    # A queue is short until memory is nearly busy.
    queue = QUEUE_CYCLES * np.clip(memory * busiest / blocks / count / pace, 0.0, 1.0) ** 2
    transfer = np.maximum(l2, unique * busiest / memory_speed(target, "L2")) / count
    path = idle + np.where(copy == BULK, queue + transfer, 0.0)
    arrival = path + np.where(staged > 0, latency.get("shared", 0.0) + 2 * code.barrier_cycles, 0.0)
    fill = arrival + np.where(copy == BULK, 0.0, l2 / count)
    trip = arrival + np.where(of_cluster > 1, NEIGHBOUR_CYCLES, 0.0)
    issue = intrinsic.timing.get("latency", 32.0)
    waits = np.where(stages > 1, count * np.maximum(trip / ahead - busy / count, 0.0), count * trip)
    warps = np.maximum(column_of(v, names("warps")), 1.0) if names("warps") in v else workers
    turns = np.maximum(moved / count / warps / code.loads_in_flight, 1.0)  # loads that nothing is computed beside
    waits = np.where((copy == SYNC) & (staged > 0), count * path * turns, waits)
    if intrinsic.scope == "warpgroup":
        meeting = code.slice_cycles + code.meeting_cycles * np.maximum(of_cluster - 1, 0.0)
        waits = waits + np.where(roles | (staged == 0), 0.0, count * meeting)
    waits = waits + unhidden(intrinsic, fragments, copy, stages, count, steps)
    once = np.where(stages > 1, busy, mma + l2)
    chain = np.where(staged > 0, np.maximum(once, busy) + waits, busy + count * trip + steps / unroll * issue) + fill
    out = intrinsic.accumulator
    tile_out: Column = prod((column_of(v, names(f"tile_{a.name}")) for a in pair), start=one)
    gathered = (column("gather", none) == CLUSTER) & (shares > 1)
    elsewhere = (shares > 1) & ~gathered
    bits = np.where(elsewhere, out.dtype.bits, stored_bits(nest))
    epilogue = column_of(v, names("epilogue")) if names("epilogue") in v else none
    store = tile_out * out.elements * bits / 8 / code.store_bytes * np.where(epilogue == 0, code.scattered_store, 1.0)
    store = store * sectors_written(nest, epilogue, bits)
    finishing = np.where(gathered, np.minimum(shares, workers), 1.0)  # blocks that a tile is shared out to
    taken = tile_out * out.elements * out.dtype.bits / 8 * (shares - 1.0) / code.peer_bytes
    store = (store + np.where(gathered, taken, 0.0)) / finishing
    exposed = np.select([epilogue == k for k in code.exposed_store], list(code.exposed_store.values()), 1.0)
    # The second grid has a block for a tile, whose threads take share after share.
    written = share_traffic(nest, np.where(elsewhere, shares, 1.0)) / 2 / memory_speed(target, "DRAM") / DRAM_SHARE
    share = tile_out * out.elements * out.dtype.bits / 8 / port + latency.get("L2", 0.0)
    added = np.where(elsewhere, np.ceil(tiled / target.cores) * shares * share, 0.0)
    values = (mma, smem, l2, busy, fill, chain, store, exposed, blocks, tiles, shares, resident, of_cluster, at_once)
    return _Block(*values, memory, written + np.maximum(written, added), persistent, elsewhere)


def engine_cycles(span: Column) -> Column:
    """Of the copy engine for a byte, in rows of so many bytes."""
    row = np.maximum(np.minimum(ROW_CYCLES + ROW_BYTE_CYCLES * span, MOST_ROW_CYCLES), span / L2_PORT_BYTES)
    return np.asarray(row / span)


def issue_rate(intrinsic: Intrinsic, target: Target) -> float:
    """Issues a cycle and core: the target's own figure, else from its class's operations, else the stated timing."""
    if intrinsic.name in target.rates:
        return target.rates[intrinsic.name]
    inputs = intrinsic.inputs[0].dtype.name
    if intrinsic.scope in ("warp", "warpgroup"):
        kind, share = f"ops.tensor.{inputs}", tensor_share(intrinsic)
        exact = f"{kind}.{intrinsic.accumulator.dtype.name}"  # where the type of the sum makes a difference
        kind = exact if exact in target.rates else kind
    else:
        # A portable instruction is arithmetic in its accumulator's type; a dot product has a unit of its own.
        kind, share = f"ops.{intrinsic.accumulator.dtype.name if intrinsic.isa == 'portable' else inputs}", 1.0
    if kind in target.rates:
        return share * target.rates[kind] / intrinsic.operations
    return 1.0 / intrinsic.timing.get("interval", 1.0)


def tensor_share(intrinsic: Intrinsic) -> float:
    """The share of the tensor peak that a warp's or a warpgroup's instruction can reach."""
    if intrinsic.scope == "warp":
        return MMA_SYNC_SHARE
    n = intrinsic.accumulator.shape[-1]
    return float(np.interp(np.log2(n), np.log2(list(WGMMA_SHARE)), list(WGMMA_SHARE.values())))


def gpu_scalar(part: ScalarPart, v: Columns, plan: Plan, work_cycles: float) -> tuple[Column, Column]:
    """Seconds of a scalar stage and of its launch: blocks share the outermost axis, a warp the vector axis."""
    target = plan.target
    rows = len(v[part.names("threads")])
    extents = {a.name: a.extent for a in part.stage.axes if not free_vars(a.upper) | free_vars(a.lower)}
    blocks = float(extents.get(part.order[0], 1)) if part.parallel and part.order else 1.0
    vector = column_of(v, part.names("vector")) if part.vector else np.ones(rows)
    lanes = np.minimum(vector, target.limits["warp_threads"])
    resident = float(target.cores * target.limits.get("blocks_per_core", 32))
    most = target.cores * target.rates.get("scalar", 128.0)
    speed = np.minimum(min(blocks, resident) * lanes / SCALAR_LATENCY, most)
    points = prod(extents.values()) * sum(1 for _ in walk(part.stage.assign.value))
    return max(work_cycles, points) / speed / target.clock_hz, np.full(rows, LAUNCH_SECONDS)


def memory_speed(target: Target, name: str) -> float:
    """Bytes a cycle of a level: of one core where it belongs to a core, else of the device."""
    for m in target.memories:
        if m.name == name and m.bandwidth_bytes_per_s:
            return m.bandwidth_bytes_per_s / target.clock_hz
    return float("inf")
