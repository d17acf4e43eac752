"""What the inputs of one thread block ask of its core: shared memory, its banks, L2, and TMA.

Inputs go through shared memory slice by slice, copied by threads or by TMA, or straight from memory to registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import add

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.block_schedule import BlockSchedule, InputTile, column_or
from autosched.costmodel.analytic.gpu.code_constants import GpuCode
from autosched.costmodel.analytic.gpu.fragments import lanes_share
from autosched.costmodel.analytic.gpu.gpu_traffic import (
    LINE_BYTES,
    Column,
    Columns,
    further_lines,
    lines,
    sectors,
)
from autosched.costmodel.analytic.gpu.rates import memory_speed, tma_cycles
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.gpu.grid_order import cluster_kinds
from autosched.tiling.steps.gpu.operands.computed_slices import (
    fetched_raw,
    loads,
    operations,
    source_bytes,
    sources_read,
)
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES
from autosched.tiling.steps.gpu.operands.operand_sources import DESCRIPTOR
from autosched.tiling.steps.gpu.operands.slice_copies import ASYNC

FURTHER_LINE_CYCLES = 3.0
"""Of TMA for each line that a row of a box touches beyond those that it fills. On an H100 slices of 192x192 tiles of
3000³ (rows of 6,000 bytes) came every 1,890 cycles without a cluster, and every 1,520 where two blocks shared one
operand; those of 3008³ and 3072³ as fast as products take them, with clusters and without."""


@dataclass(frozen=True)
class InputCycles:
    """Of one block over all of its depth units, each column of shape (rows,), as if its unit had no other work."""

    filled: Column  # cycles of shared memory for what TMA brings
    copied: Column  # cycles of shared memory and the L1 port for copies by threads
    read_bytes: Column  # that workers load through shared memory
    tma: Column  # cycles of TMA
    warp_copies: Column  # a count: loads or asynchronous copies that warps issue
    l2_bytes: Column  # that come out of L2
    operations: Column  # of threads, to compute elements on the way
    staged: npt.NDArray[np.bool_]  # whether an input goes through shared memory
    waited: npt.NDArray[np.bool_]  # whether threads wait for loads before they fill a slice: one that they compute
    grouped: npt.NDArray[np.bool_]  # whether it is computed from what is fetched ahead and what is loaded then
    apart: npt.NDArray[np.bool_]  # whether calls that run on take it from registers, and are waited for one by one

    def __add__(self, other: InputCycles) -> InputCycles:
        return InputCycles(
            self.filled + other.filled,
            self.copied + other.copied,
            self.read_bytes + other.read_bytes,
            self.tma + other.tma,
            self.warp_copies + other.warp_copies,
            self.l2_bytes + other.l2_bytes,
            self.operations + other.operations,
            self.staged | other.staged,
            self.waited | other.waited,
            self.grouped | other.grouped,
            self.apart | other.apart,
        )


def input_cycles(
    nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode, schedule: BlockSchedule
) -> InputCycles:
    """The sum over all inputs of the instruction."""
    return reduce(add, (_of_input(nest, names, v, target, code, schedule, o) for o in nest.intrinsic.inputs))


def _of_input(
    nest: Nest, names: StepNames, v: Columns, target: Target, code: GpuCode, schedule: BlockSchedule, operand: Operand
) -> InputCycles:
    tile = InputTile.of(nest, names, v, operand)
    one, zero = np.ones_like(schedule.steps), np.zeros_like(schedule.steps)
    shared = tile.source > 0
    described = tile.source == DESCRIPTOR
    staged_bytes = schedule.steps * shared * tile.block_bytes
    row_bytes = np.maximum(column_or(nest, names, v, f"row_{operand.name}", zero), CHUNK_BYTES)
    ways = np.maximum(column_or(nest, names, v, f"ways_{operand.name}", one), 1.0)

    width = np.maximum(schedule.vector, operand.dtype.bits / 8)
    warp_bytes = width * target.limits["warp_threads"]
    warp_copies = staged_bytes / warp_bytes
    copied = warp_copies * _copy_turns(schedule, code, described, row_bytes, width, warp_bytes)

    sharers = _sharers(nest, tile, schedule)
    asked = 1.0 - code.multicast * (1.0 - 1.0 / sharers)  # part of the slices that this block of a cluster asks for
    box_row = np.where(schedule.swizzle > 0, schedule.swizzle, np.where(described, CHUNK_BYTES, row_bytes))
    # Blocks that run together find whole lines in L2 already, but not parts of lines: those multicast saves.
    parts = FURTHER_LINE_CYCLES * further_lines(nest, operand.name, box_row) / sharers
    tma = staged_bytes * (tma_cycles(box_row) * asked + parts / box_row)

    loaded = fragment_bytes(nest, tile, target, schedule.accumulators, schedule.workers_along)
    touched = sectors(nest, operand.name)
    straight = tile.worker_bytes * max(touched, lines(nest, operand.name))
    fetched = np.where(shared, tile.block_bytes * asked, tile.block_bytes * min(touched, code.most_fetched))
    narrow = source_bytes(nest, operand.name) * 8 / operand.dtype.bits
    straight_elements = schedule.workers * tile.worker_bytes  # each warp computes what it loads
    computed = schedule.steps * np.where(shared, tile.block_bytes, straight_elements) * 8 / operand.dtype.bits
    # Lanes that compute fragments load what these are made of one by one.
    one_by_one = np.where(shared, 0.0, computed / target.limits["warp_threads"]) * sources_read(nest, operand.name)
    ahead = shared & (schedule.copy == ASYNC) & bool(fetched_raw(nest, operand.name))
    return InputCycles(
        filled=staged_bytes / memory_speed(target, "shared"),
        copied=copied,
        read_bytes=schedule.steps * schedule.workers * np.where(shared, loaded * ways, straight * narrow),
        tma=tma,
        warp_copies=warp_copies * loads(nest, operand.name) + one_by_one,
        l2_bytes=schedule.steps * fetched * narrow,
        operations=computed * operations(nest, operand.name),
        staged=shared,
        waited=shared & (operand.name in nest.computed) & ~ahead,
        grouped=ahead & (sources_read(nest, operand.name) > len(fetched_raw(nest, operand.name))),
        apart=~described & nest.intrinsic.asynchronous,
    )


def fragment_bytes(
    nest: Nest, tile: InputTile, target: Target, accumulators: Column, workers_along: Sequence[Column]
) -> Column:
    """Bytes that shared memory delivers to one worker for one depth unit: fragments of each call where the instruction
    reads shared memory itself, else those of the register tile, less what lanes of a warp share."""
    warp = target.limits["warp_threads"]
    own = tile.worker_bytes * lanes_share(nest.intrinsic, gpu_pair(nest), tile.axes, workers_along, warp)
    return np.where(tile.source == DESCRIPTOR, accumulators * tile.fragment_bytes, own)


def _copy_turns(
    schedule: BlockSchedule,
    code: GpuCode,
    described: npt.NDArray[np.bool_],
    row_bytes: Column,
    width: Column,
    warp_bytes: Column,
) -> Column:
    """Cycles of one copy by a warp, whose threads copy neighbours along a row: lines that it asks memory for, and turns
    of the banks, more of them where parts of a row (16 bytes, or swizzled spans) lie whole multiples of 128 bytes
    apart."""
    packed = np.where(described, np.maximum(schedule.swizzle, CHUNK_BYTES), row_bytes)
    conflicts = np.clip(np.minimum(row_bytes, LINE_BYTES) / packed, 1.0, np.maximum(width / 2, 2.0))
    turns = np.maximum(warp_bytes / LINE_BYTES, 1.0)
    filled = np.where(schedule.copy == ASYNC, code.fill_turns, 1.0)
    return np.maximum(turns, warp_bytes / row_bytes) + turns * conflicts * filled


def _sharers(nest: Nest, tile: InputTile, schedule: BlockSchedule) -> Column:
    """Blocks of a cluster that read the same slice of an input."""
    pair = gpu_pair(nest)
    count: Column = np.ones_like(schedule.steps)
    for k, kind in enumerate(cluster_kinds(pair), 1):
        receivers = prod(n for a, n in zip(pair, kind, strict=True) if a not in tile.axes)
        count = np.where(schedule.cluster == k, float(receivers), count)
    return count
