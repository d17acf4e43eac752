"""How an operand of a GPU's instruction may travel: what the instruction asks for, how the tensor lies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from autosched.ir.value import Read
from autosched.logic import TRUE, Int, Var, evaluate, free_vars, merge_dimensions, row_major
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.outputs import OutputAccess
from autosched.tiling.steps.gpu.block_tile import gpu_pair

CHUNK_BYTES = 16  # of shared memory that a swizzle moves together, and the widest access of one thread
MOST_DIMENSIONS = 5  # of what the engine copies (CUDA driver API, cuTensorMapEncodeTiled)
WORD_BYTES = 4  # the narrowest copy that is offered beside one element
SLICE_ELEMENTS = (16, 32, 64, 128, 256)


def element_offset(nest: Nest, operand: str) -> Int:
    """Row-major offset of an element of the operand's tensor; variables are positions (in elements) along nest axes."""
    read = nest.mapping.operands[operand]
    return _offset(nest, read.tensor, read.index)


def steps_of(extents: Sequence[int]) -> tuple[int, ...]:
    """Elements from one to the next along each dimension of a tensor."""
    return tuple(prod(extents[d + 1 :]) for d in range(len(extents)))


def output_offset(nest: Nest, output: OutputAccess) -> Int:
    """The same of an element that is written."""
    return _offset(nest, output.tensor, output.index)


def _offset(nest: Nest, tensor: str, index: tuple[object, ...]) -> Int:
    places = nest.at({a.name: Var(a.name) for a in nest.axes})
    placed = [substitute_int(part, places) for part in index if isinstance(part, Int)]
    return row_major(*merge_dimensions(placed, nest.mapping.program.tensors[tensor].extents))


def along(offset: Int, axis: NestAxis) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Offsets of the elements along one axis, all other positions being 0."""
    env: dict[str, object] = dict.fromkeys(free_vars(offset), 0)
    places = evaluate(offset, env | {axis.name: np.arange(max(1, axis.extent), dtype=np.int64)})
    return np.broadcast_to(np.asarray(places, np.int64), (max(1, axis.extent),))


def run_length(offset: Int, axis: NestAxis) -> int:
    """Neighbours along the axis that are neighbours in memory, in whole runs: the extent where all are, 1 if none."""
    places = along(offset, axis)
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    return int(np.gcd.reduce(breaks)) if len(breaks) else axis.extent


@of_nest
def memory_major(nest: Nest, operand: str) -> NestAxis | None:
    """The axis of the operand along which its tensor runs on, the depth first, of those along which a slice has several
    elements: a block has one element only of others (a window's columns, channels that do not mix)."""
    offset, tiled = element_offset(nest, operand), gpu_pair(nest)
    mine = [a for a in nest.operand_axes(operand) if a is nest.depth or a.intrinsic_axis or a in tiled]
    depth_first = sorted(mine, key=lambda a: a is not nest.depth)
    return next((a for a in depth_first if a.extent > 1 and run_length(offset, a) > 1), None)


@of_nest
def layout_major(nest: Nest, operand: str) -> NestAxis:
    """The axis along which a copy in shared memory runs on: as the instruction asks for, or the tensor does."""
    wanted = nest.intrinsic.contiguous.get(operand) if operand in nest.intrinsic.shared_memory else None
    asked = next((a for a in nest.operand_axes(operand) if wanted and a.intrinsic_axis == wanted), None)
    found = asked or memory_major(nest, operand) or nest.depth
    return found if found is not None and found in nest.operand_axes(operand) else nest.operand_axes(operand)[-1]


@of_nest
def aligned_bytes(nest: Nest, operand: str) -> int:
    """Bytes (a power of two up to 16) that can be copied at once everywhere: runs in memory are as long, start at
    multiples of it, and no guard cuts them; 0 where elements go one by one."""
    size, major = nest.intrinsic.operands[operand].dtype.bits, layout_major(nest, operand)
    if size < 8 or major is not memory_major(nest, operand):
        return 0
    members = {m for m, _, _ in major.members}
    if nest.guarded[operand] != TRUE and free_vars(nest.guarded[operand]) & members:
        return 0
    others = [a for a in nest.operand_axes(operand) if a is not major]
    return _aligned(element_offset(nest, operand), size // 8, major, others)


def read_together(nest: Nest, operand: str, read: Read, size: int) -> bool:
    """Whether neighbours of the operand read neighbours of another tensor, of `size` bytes each, a word of them
    aligned wherever they begin."""
    major, offset = layout_major(nest, operand), _offset(nest, read.tensor, read.index)
    others = [a for a in nest.operand_axes(operand) if a is not major]
    return _aligned(offset, size, major, others) >= WORD_BYTES


def _aligned(offset: Int, size: int, major: NestAxis, others: list[NestAxis]) -> int:
    run = run_length(offset, major)
    steps = [CHUNK_BYTES, *((run * size,) if run < major.extent else ())]
    steps += [int(v) * size for a in others for v in np.unique(along(offset, a))]
    common = int(np.gcd.reduce(np.asarray(steps, np.int64)))
    return common if common > max(size, WORD_BYTES - 1) else 0


@of_nest
def stored_bytes(nest: Nest, output: OutputAccess, axis: NestAxis, size: int) -> int:
    """The same of what is written, along one of the nest's axes, `size` bytes an element."""
    offset = output_offset(nest, output)
    if run_length(offset, axis) == 1 and axis.extent > 1:
        return 0
    return _aligned(offset, size, axis, [a for a in nest.spatial if a is not axis])


@of_nest
def stored_in_boxes(nest: Nest, output: OutputAccess) -> bool:
    """Whether TMA can store boxes of what is written: all of the nest's axes are evenly apart in memory,
    and begin where the tensor does."""
    offset = output_offset(nest, output)
    axes = [a for a in nest.spatial if a.extent > 1 or a in gpu_pair(nest)]
    if len(axes) > MOST_DIMENSIONS or evaluate(offset, dict.fromkeys(free_vars(offset), 0)) != 0:
        return False
    steps = [np.unique(np.diff(along(offset, a))) for a in axes]
    return all(len(s) == 0 or (len(s) == 1 and s[0] > 0) for s in steps)


def depth_slices(depth: NestAxis) -> tuple[int, ...]:
    """Units of the depth that a slice may hold."""
    sizes = sorted({max(1, n // depth.unit) for n in SLICE_ELEMENTS})
    return tuple(n for n in sizes if n <= depth.units) or (1,)
