"""Bytes that a nest on a GPU moves between memory and L2, and the lines and sectors that it touches of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from autosched.logic import Const, Var, evaluate, free_vars
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.common.layout import flat_offset, tensor_elements
from autosched.tiling.steps.gpu.operands.computed_slices import source_bytes

L2_SHARE = 0.7  # of L2 that one kernel's data can count on
APART = 0.2  # of a tensor that is fetched again where blocks which share its slices are numbered far apart (few rows)
LINE_BYTES = 128.0  # of a cache, which answers a warp line by line; all banks of shared memory take as many at once
SECTOR_BYTES = 32  # memory is moved in sectors of 32 bytes (CUDA C++ best practices guide, coalesced access)
SCATTERED_RUN = 8  # elements of a row that lanes of a warp store so: half a sector of f16 (2.5 times slower)
WORST_SECTORS = 8.0  # fragments whose elements lie apart: neighbours in the warp use the rest of a sector from L1

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


def memory_bytes(
    nest: Nest, names: StepNames, v: Columns, target: Target, blocks: Column, at_once: Column, shares: Column
) -> Column:
    """Bytes between L2 and DRAM: inputs once where they fit L2, else once for each wave of blocks; outputs once.
    `at_once` blocks run on a core, and so many `shares` make a sum."""
    pair = gpu_pair(nest)
    grids = [column_of(v, names(f"grid_{a.name}")) for a in pair]
    left = np.minimum(target.cores * at_once, blocks)
    together: dict[str, Column] = {a.name: np.minimum(g, left) for a, g in zip(pair, grids, strict=True)}
    if len(pair) == 2:  # tiles of a wave: `group` along the slow axis, the fast one filled first
        swapped = column_of(v, names("raster")) > 0
        group = column_of(v, names("group")) if names("group") in v else np.ones_like(blocks)
        slow_grid, fast_grid = np.where(swapped, grids[1], grids[0]), np.where(swapped, grids[0], grids[1])
        slow = np.minimum(slow_grid, group)
        fast = np.minimum(fast_grid, np.ceil(left / slow))
        slow = np.minimum(slow_grid, slow * np.ceil(left / (slow * fast_grid)))
        together[pair[0].name] = np.where(swapped, fast, slow)
        together[pair[1].name] = np.where(swapped, slow, fast)
    waves = np.ceil(blocks / np.maximum(1.0, left))
    beside = np.clip(np.ceil(left * shares / blocks), 1.0, shares)  # shares of a sum in one wave
    steps = float(prod(a.units for a in nest.reduction))
    total, again, whole = np.zeros_like(blocks), np.zeros_like(blocks), 0.0
    for o in nest.intrinsic.inputs:
        size = o.elements * source_bytes(nest, o.name)
        tensor = tensor_elements(nest, o.name) * source_bytes(nest, o.name)
        mine: Column = size * steps * beside / shares
        for a in pair:
            if a in nest.operand_axes(o.name):
                mine = mine * together[a.name] * column_of(v, names(f"tile_{a.name}"))
        total, whole = total + np.minimum(mine, tensor) * waves, whole + tensor
        if len(pair) == 2:
            shared = np.where(swapped, *(float(a not in nest.operand_axes(o.name)) for a in reversed(pair)))
            again = again + np.where((shared > 0) & (slow_grid > 1) & (group == 1), APART * tensor, 0.0)
    capacity = L2_SHARE * next((m.bytes for m in target.memories if m.name == "L2"), 0)
    written = _written_bytes(nest)
    epilogue = column_of(v, names("epilogue")) if names("epilogue") in v else np.zeros_like(blocks)
    stored = written * sectors_written(nest, epilogue, stored_bits(nest))
    return (np.full_like(blocks, whole) if whole <= capacity else np.maximum(total, whole)) + again + stored


def least_memory_bytes(nest: Nest) -> float:
    """What `memory_bytes` is at least: each input once, and the outputs."""
    read = sum(tensor_elements(nest, o.name) * source_bytes(nest, o.name) for o in nest.intrinsic.inputs)
    return read + _written_bytes(nest)


def _written_bytes(nest: Nest) -> float:
    return float(prod(a.units for a in nest.spatial)) * nest.intrinsic.accumulator.elements * stored_bits(nest) / 8


def sectors_written(nest: Nest, epilogue: Column, bits: Column | int) -> Column:
    """Bytes of sectors that stores touch, over their own bytes: what lanes of a warp store straight from registers may
    be a part of one."""
    if nest.intrinsic.scope not in ("warp", "warpgroup"):
        return np.ones_like(epilogue)
    return np.where(epilogue == 0, np.maximum(SECTOR_BYTES * 8.0 / (SCATTERED_RUN * np.asarray(bits)), 1.0), 1.0)


def share_traffic(nest: Nest, shares: Column) -> Column:
    """Bytes of partial sums, written and read again."""
    out = nest.intrinsic.accumulator
    whole = float(prod(a.units for a in nest.spatial)) * out.elements * out.dtype.bits / 8
    return np.where(shares > 1, 2.0 * shares * whole, 0.0)


def stored_bits(nest: Nest) -> int:
    """Bits of an element of what follows the sum, as the program stores it."""
    program, target = nest.mapping.program, nest.stage.assign.tensor
    if not program.tensors[target].intermediate:
        return program.tensors[target].dtype.bits
    later = [s.assign.tensor for s in program.stages if any(r.tensor == target for r in s.reads)]
    return program.tensors[later[-1]].dtype.bits if later else nest.intrinsic.accumulator.dtype.bits


def lines(nest: Nest, operand: str) -> float:
    """What a cache answers for a fragment of a warp straight from memory, a line at a time, over its own bytes. Threads
    side by side share lines."""
    return 1.0 if nest.intrinsic.scope == "thread" else _touched(nest, operand, LINE_BYTES)


def sectors(nest: Nest, operand: str) -> float:
    """Bytes in the sectors that one fragment touches, over its own bytes: 1 where rows fill their sectors."""
    return _touched(nest, operand, SECTOR_BYTES)


def further_lines(nest: Nest, operand: str, span: Column) -> Column:
    """Lines that a row of a box, of `span` bytes, touches beyond those that it would fill: where rows of the tensor are
    no multiple of a line apart, they begin anywhere in one."""
    tensor = nest.mapping.program.tensors[nest.mapping.operands[operand].tensor]
    pitch = tensor.shape[-1] if len(tensor.shape) > 1 else Const(0)
    alignment = LINE_BYTES
    if isinstance(pitch, Const):
        alignment = float(gcd(pitch.value * max(1, tensor.dtype.bits // 8), int(LINE_BYTES)))
    return np.where(span >= LINE_BYTES, 1.0 - alignment / LINE_BYTES, np.maximum(span - alignment, 0.0) / LINE_BYTES)


def _touched(nest: Nest, operand: str, each: float) -> float:
    spec = nest.intrinsic.operands[operand]
    size = spec.dtype.bits / 8
    offset = flat_offset(nest, operand, Var("e"))
    env: dict[str, object] = dict.fromkeys(free_vars(offset), 0)
    places = np.asarray(evaluate(offset, env | {"e": np.arange(spec.elements)}))
    touched = len(np.unique(np.floor(np.broadcast_to(places, (spec.elements,)) * size / each)))
    return float(np.clip(touched * each / (spec.elements * size), 1.0, WORST_SECTORS))


def column_of(v: Columns, name: str) -> Column:
    return v[name].astype(np.float64)
