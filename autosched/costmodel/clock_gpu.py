"""The analytic clock of a nest on a GPU: seconds of each row, term by term, vectorised; no measurement.

A core (an SM) runs as many blocks at once as fit; together they take as long as the busiest of its units, or as long
as one block's chain of latencies where too few blocks are there to hide it. Blocks come in waves, the last one
partial. The equations are a simplification of published models of GEMM on NVIDIA GPUs (the roofline of Pruner, arXiv
2402.02361, and of DeepGEMM's heuristics); constants that come from neither a target nor a manual are named below with
their source.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.ir.value import walk
from autosched.logic import Var, evaluate, free_vars
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.nest import Nest
from autosched.tiling.plan import Plan, ScalarPart
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.gpu_stage import stage_name
from autosched.tiling.steps.gpu_tile import workers_name
from autosched.tiling.steps.layout import flat_offset, tensor_elements

TERMS = ("mma", "shared", "l2", "dram", "latency", "store", "launch")
"""Seconds by name, each as if nothing else took time; `total` combines them."""

MMA_SYNC_SHARE = (
    0.65  # of the tensor peak that warp-wide mma reaches on Hopper; only wgmma gets more (arXiv 2402.13499)
)
L2_PORT_BYTES = 64.0  # a cycle that one SM takes from L2 at most (DeepGEMM's performance model)
DRAM_SHARE = 0.9  # of the datasheet's bandwidth that copies reach: 4.3 of 4.8 TB/s on an H200
L2_SHARE = 0.7  # of L2 that one kernel's data can count on
UNHIDDEN = 0.15  # share of the shorter of two units' work that does not overlap with the longer
SECTOR_BYTES = 32  # memory is moved in sectors of 32 bytes (CUDA C++ best practices guide, coalesced access)
WORST_SECTORS = 8.0  # fragments whose elements lie apart: neighbours in the warp use the rest of a sector from L1
MOST_FETCHED = 2.0  # times its bytes that such a fragment takes from L2: neighbouring fragments use what L1 holds
BARRIER_CYCLES = 30.0  # of a block-wide barrier among a few warps (a round figure)
STORE_BYTES = 32.0  # a cycle that one SM writes
LAUNCH_SECONDS = 3e-6  # of an empty kernel, between two events (a round figure)
SCALAR_LATENCY = 4.0  # cycles until a thread may use its last result (arXiv 2402.13499)

Columns = Mapping[str, npt.NDArray[np.int64]]
Terms = dict[str, npt.NDArray[np.float64]]
Column = npt.NDArray[np.float64]


def gpu_tensor(nest: Nest, names: StepNames, v: Columns, target: Target) -> Terms:
    """Seconds per row of a tensor part laid out by the GPU steps."""
    intrinsic, pair = nest.intrinsic, gpu_pair(nest)
    threads, blocks = _column(v, names("threads_in_block")), _column(v, names("blocks"))
    at_once = _column(v, names("blocks_at_once"))
    along = [_column(v, workers_name(nest, names, a)) for a in pair]
    workers: Column = prod(along, start=np.ones_like(threads))
    accumulators = _column(v, names("accumulators"))
    steps = float(prod(a.units for a in nest.reduction))
    unroll = _column(v, names("unroll")) if nest.depth else np.ones_like(threads)
    depth_block = _column(v, names.block(nest.depth)) if nest.depth else np.ones_like(threads)
    latency = {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}
    port = min(L2_PORT_BYTES, _bandwidth(target, "L2") / target.cores)

    # One block, in cycles of its core.
    mma = workers * accumulators * steps / issue_rate(intrinsic, target)
    copied, read, unique = (np.zeros_like(threads) for _ in range(3))
    staged = np.zeros_like(threads)
    for o in intrinsic.inputs:
        size = o.elements * o.dtype.bits / 8
        own = [a for a in pair if a in nest.operand_axes(o.name)]
        mine: Column = prod((_column(v, names.register(a)) for a in own), start=np.full_like(threads, size))
        tile: Column = prod((_column(v, names(f"tile_{a.name}")) for a in own), start=np.full_like(threads, size))
        shared = _column(v, stage_name(names, o.name)) if nest.depth else np.zeros_like(threads)
        spread = sectors(nest, o.name)
        copied += steps * shared * tile
        read += steps * workers * mine * np.where(shared > 0, 1.0, spread)
        unique += steps * tile * np.where(shared > 0, 1.0, min(spread, MOST_FETCHED))
        staged = np.maximum(staged, shared)
    width = _bandwidth(target, "shared")
    smem, l2 = (copied + read) / width, unique / port
    trips = steps / np.where(staged > 0, depth_block, unroll)
    path = latency.get("L2", 0.0) + np.where(staged > 0, latency.get("shared", 0.0) + 2 * BARRIER_CYCLES, 0.0)
    chain = trips * path + steps / unroll * intrinsic.timing.get("latency", 32.0)
    out = intrinsic.accumulator
    tile_out: Column = prod((_column(v, names(f"tile_{a.name}")) for a in pair), start=np.ones_like(threads))
    store = tile_out * out.elements * out.dtype.bits / 8 / STORE_BYTES
    units = np.stack([mma, smem, l2])
    longest = units.max(axis=0)
    busy = longest + UNHIDDEN * (units.sum(axis=0) - longest) + store

    def wave(count: Column) -> Column:
        alone: Column = np.where(count > 0, chain + busy, 0.0)
        return np.asarray(np.maximum(count * busy, alone), np.float64)

    full = np.floor(blocks / (target.cores * at_once))
    rest = np.ceil((blocks - full * target.cores * at_once) / target.cores)
    cycle = 1.0 / target.clock_hz
    cores = float(target.cores)
    dram = _dram(nest, names, v, target, blocks, at_once) / (_bandwidth(target, "DRAM") * target.clock_hz * DRAM_SHARE)
    on_core = (full * wave(at_once) + wave(rest)) * cycle
    each = blocks / np.minimum(blocks, cores) * cycle  # of blocks on the busiest core, were they spread evenly
    return {
        "mma": mma * each,
        "shared": smem * each,
        "l2": l2 * each,
        "dram": dram,
        "latency": chain * np.ceil(blocks / (cores * at_once)) * cycle,
        "store": store * each,
        "launch": np.full_like(threads, LAUNCH_SECONDS),
        "total": np.maximum(on_core, dram) + UNHIDDEN * np.minimum(on_core, dram) + LAUNCH_SECONDS,
    }


def issue_rate(intrinsic: Intrinsic, target: Target) -> float:
    """Issues a cycle and core: the target's own figure, else from its class's operations, else the stated timing."""
    if intrinsic.name in target.rates:
        return target.rates[intrinsic.name]
    inputs = intrinsic.inputs[0].dtype.name
    if intrinsic.scope == "warp":
        kind, share = f"ops.tensor.{inputs}", MMA_SYNC_SHARE
        exact = f"{kind}.{intrinsic.accumulator.dtype.name}"  # where the type of the sum makes a difference
        kind = exact if exact in target.rates else kind
    else:
        # A portable instruction is arithmetic in its accumulator's type; a dot product has a unit of its own.
        kind, share = f"ops.{intrinsic.accumulator.dtype.name if intrinsic.isa == 'portable' else inputs}", 1.0
    if kind in target.rates:
        return share * target.rates[kind] / intrinsic.operations
    return 1.0 / intrinsic.timing.get("interval", 1.0)


def sectors(nest: Nest, operand: str) -> float:
    """Bytes in the sectors that one fragment touches, over its own bytes: 1 where rows fill their sectors."""
    spec = nest.intrinsic.operands[operand]
    size = spec.dtype.bits / 8
    offset = flat_offset(nest, operand, Var("e"))
    env: dict[str, object] = dict.fromkeys(free_vars(offset), 0)
    places = np.asarray(evaluate(offset, env | {"e": np.arange(spec.elements)}))
    touched = len(np.unique(np.floor(np.broadcast_to(places, (spec.elements,)) * size / SECTOR_BYTES)))
    return float(np.clip(touched * SECTOR_BYTES / (spec.elements * size), 1.0, WORST_SECTORS))


def _dram(nest: Nest, names: StepNames, v: Columns, target: Target, blocks: Column, at_once: Column) -> Column:
    """Bytes between L2 and DRAM: inputs once where they fit L2, else once for each wave of blocks; outputs once."""
    pair = gpu_pair(nest)
    grids = {a.name: _column(v, names(f"grid_{a.name}")) for a in pair}
    order = [a.name for a in reversed(pair)]
    left = np.minimum(target.cores * at_once, blocks)
    together: dict[str, Column] = {}
    swapped = _column(v, names("raster")) if len(pair) == 2 else np.zeros_like(blocks)
    for k, name in enumerate(order):  # blocks of a wave along each axis, the fastest axis filled first
        other = order[1 - k] if len(order) == 2 else name
        first = np.minimum(grids[name], left)
        second = np.minimum(grids[name], np.ceil(left / grids[other])) if other != name else first
        together[name] = np.where((swapped > 0) == (k == 0), second, first)
    waves = np.ceil(blocks / np.maximum(1.0, left))
    steps = float(prod(a.units for a in nest.reduction))
    total, whole = np.zeros_like(blocks), 0.0
    for o in nest.intrinsic.inputs:
        size = o.elements * o.dtype.bits / 8
        tensor = tensor_elements(nest, o.name) * o.dtype.bits / 8
        mine: Column = np.full_like(blocks, size * steps)
        for a in pair:
            if a in nest.operand_axes(o.name):
                mine = mine * together[a.name] * _column(v, names(f"tile_{a.name}"))
        total, whole = total + np.minimum(mine, tensor) * waves, whole + tensor
    capacity = L2_SHARE * next((m.bytes for m in target.memories if m.name == "L2"), 0)
    out = nest.intrinsic.accumulator
    written = float(prod(a.units for a in nest.spatial)) * out.elements * out.dtype.bits / 8
    return (np.full_like(blocks, whole) if whole <= capacity else np.maximum(total, whole)) + written


def gpu_scalar(part: ScalarPart, v: Columns, plan: Plan, work_cycles: float) -> tuple[Column, Column]:
    """Seconds of a scalar stage and of its launch: blocks share the outermost axis, a warp the vector axis."""
    target = plan.target
    rows = len(v[part.names("threads")])
    extents = {a.name: a.extent for a in part.stage.axes if not free_vars(a.upper) | free_vars(a.lower)}
    blocks = float(extents.get(part.order[0], 1)) if part.parallel and part.order else 1.0
    vector = _column(v, part.names("vector")) if part.vector else np.ones(rows)
    lanes = np.minimum(vector, target.limits["warp_threads"])
    resident = float(target.cores * target.limits.get("blocks_per_core", 32))
    most = target.cores * target.rates.get("scalar", 128.0)
    speed = np.minimum(min(blocks, resident) * lanes / SCALAR_LATENCY, most)
    points = prod(extents.values()) * sum(1 for _ in walk(part.stage.assign.value))
    return max(work_cycles, points) / speed / target.clock_hz, np.full(rows, LAUNCH_SECONDS)


def _column(v: Columns, name: str) -> Column:
    return v[name].astype(np.float64)


def _bandwidth(target: Target, name: str) -> float:
    """Bytes a cycle of a level: of one core where it belongs to a core, else of the device."""
    for m in target.memories:
        if m.name == name and m.bandwidth_bytes_per_s:
            return m.bandwidth_bytes_per_s / target.clock_hz
    return float("inf")
