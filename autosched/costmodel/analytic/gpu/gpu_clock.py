"""The analytic clock of a nest on a GPU: seconds of each row, term by term, vectorised; no measurement.

A core (an SM) runs as many blocks at once as fit; together they take as long as the busiest of its units, or as long
as one block's chain of latencies where too few blocks are there to hide it. Blocks come in waves, the last one
partial. The equations are a simplification of published models of GEMM on NVIDIA GPUs (the roofline of Pruner, arXiv
2402.02361, and of DeepGEMM's heuristics); constants that come from neither a target nor a manual are named below with
their source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.block_cycles import BlockCycles, block_cycles
from autosched.costmodel.analytic.gpu.code_constants import GENERATED, GpuCode
from autosched.costmodel.analytic.gpu.gpu_traffic import Column, Columns, column_of
from autosched.ir.value import walk
from autosched.logic import free_vars
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import Plan, ScalarPart
from autosched.tiling.steps import StepNames
from autosched.tiling.steps.gpu.grid_order import grouped_cores

TERMS = ("mma", "shared", "l2", "dram", "latency", "store", "launch")
"""Seconds by name, each as if nothing else took time; `total` combines them."""
COPIES = "copies"
"""Seconds of the banks, and of the port to memory, that copies by threads keep busy: part of `shared`. Rows in
registers wait for them: their shuffles take the same way (attention of 4096 tokens on an H200: copies into one bank
took 65 µs more, what the banks' turns alone take; without copies it took 22 of 182 less)."""

CLUSTER_SECONDS = 0.7e-6
"""Of a launch in clusters: 0.6 to 0.8 us more than the same row without (e4m3 1024³, n = 64 to 128) on an H200, and
0.6 (bf16 1024³) on an H100, of which 0.5 are the meeting of a cluster's blocks before they begin."""
SCALAR_LATENCY = 4.0  # cycles until a thread may use its last result (arXiv 2402.13499)
LAUNCH_SECONDS = 2e-6  # of an empty kernel in a graph (a round figure: 1024³ in fp8 takes 4.6 us in all)

# Of the workload: random numbers make the tensor pipe draw more power than zeros, and the clock goes down with its use.
THROTTLED = 0.93  # of the clock at full use on random data (13 % less than on zeros, on an H200)
THROTTLE_FROM = 0.6  # use of the tensor pipe from which on it does

Terms = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Repeated:
    """A nest whose grid is that of so many `times` it; memory moves so many times its bytes (`moved`)."""

    times: float
    moved: float

    def of(self, b: BlockCycles) -> BlockCycles:
        s = b.schedule
        s = replace(s, blocks=s.blocks * self.times, tiles=s.tiles * self.times)
        return replace(b, schedule=s, memory=b.memory * self.moved)


ONCE = Repeated(1.0, 1.0)


def gpu_tensor(
    nest: Nest,
    names: StepNames,
    v: Columns,
    target: Target,
    code: GpuCode = GENERATED,
    *,
    least: bool = False,
    repeated: Repeated = ONCE,
) -> Terms:
    """Seconds per row of a tensor part laid out by the GPU steps, printed by a code generator with these constants.
    With `least`, lower bounds: how tiles are numbered and grouped, how results leave and whether blocks persist are
    taken at their best, each by itself."""
    b = repeated.of(block_cycles(nest, names, v, target, code, least=least))
    s, cycle = b.schedule, 1.0 / target.clock_hz
    clustered = np.maximum(s.cluster_blocks, np.where(s.second_grid, 1.0, s.shares))
    cores = np.where(clustered > 2, float(grouped_cores(target.cores)), float(target.cores))
    persistent, once = _persistent_cycles(b), _wave_cycles(b, cores)
    on_core = np.minimum(persistent, once) if least else np.where(s.persistent, persistent, once)
    used_cores = np.minimum(s.blocks, cores)
    use = np.clip(b.mma * s.blocks / used_cores / np.maximum(on_core, 1.0) - THROTTLE_FROM, 0.0, None)
    on_core = on_core / (1.0 - (1.0 - THROTTLED) * use / (1.0 - THROTTLE_FROM)) * cycle
    on_core = np.where(s.cluster_blocks > 1, code.cluster_share, 1.0) * on_core
    dram, fixup = b.memory * cycle, b.fixup * cycle
    each = s.blocks / used_cores * cycle  # of blocks on the busiest core, were they spread evenly
    launches = np.where(s.second_grid, 2.0, 1.0) * LAUNCH_SECONDS
    launches = launches + np.where((s.cluster_blocks > 1) | s.cluster_reduction, CLUSTER_SECONDS, 0.0)
    return {
        "mma": b.mma * each,
        "shared": b.smem * each,
        COPIES: b.copies * each,
        "l2": b.l2 * each,
        "dram": dram + fixup,
        "latency": b.chain * np.ceil(s.blocks / (cores * s.at_once)) * cycle,
        "store": b.store * each,
        "launch": launches,
        "total": np.maximum(on_core, dram) + code.unhidden * np.minimum(on_core, dram) + launches + fixup,
    }


def _wave_cycles(b: BlockCycles, cores: Column) -> Column:
    """Cycles of the busiest core that runs one wave of blocks after the other, the last one partial."""
    s = b.schedule

    def wave(count: Column) -> Column:
        """Cycles of a core that runs so many blocks side by side."""
        alone: Column = np.where(count > 0, b.chain + b.store, 0.0)
        return np.maximum(count * (b.busy + np.where(count > 1, 0.5, 1.0) * b.store), alone)

    full = np.floor(s.blocks / (cores * s.at_once))
    rest = np.ceil((s.blocks - full * cores * s.at_once) / cores)
    return full * wave(s.at_once) + wave(rest)


def _persistent_cycles(b: BlockCycles) -> Column:
    """Cycles of a block that computes tile after tile."""
    s = b.schedule
    resident = s.resident * s.cluster_blocks
    tiles = np.ceil(s.tiles * s.cluster_blocks * s.shares / np.maximum(resident, 1.0))
    return tiles * (np.maximum(b.busy, b.chain - b.fill) + b.exposed * b.store) + b.fill + b.store


def gpu_scalar(
    part: ScalarPart, v: Columns, plan: Plan, work_cycles: float, each: bool = False
) -> tuple[Column, Column]:
    """Seconds of a scalar stage and of its launch: blocks share the outermost axis, a warp the vector axis; `each`:
    threads share all axes."""
    target = plan.target
    rows = len(v[part.names("threads")])
    extents = {a.name: a.extent for a in part.stage.axes if not free_vars(a.upper) | free_vars(a.lower)}
    blocks = float(extents.get(part.order[0], 1)) if part.parallel and part.order else 1.0
    if each:
        blocks = float(prod(extents.values()))
    vector = column_of(v, part.names("vector")) if part.vector else np.ones(rows)
    lanes = np.minimum(vector, target.limits["warp_threads"])
    resident = float(target.cores * target.limits.get("blocks_per_core", 32))
    most = target.cores * target.rates.get("scalar", 128.0)
    speed = np.minimum(min(blocks, resident) * lanes / SCALAR_LATENCY, most)
    points = prod(extents.values()) * sum(1 for _ in walk(part.stage.assign.value))
    return max(work_cycles, points) / speed / target.clock_hz, np.full(rows, LAUNCH_SECONDS)
