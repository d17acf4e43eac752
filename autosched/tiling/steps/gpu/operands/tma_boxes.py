"""What TMA can fetch of a tensor: boxes, or the pixels that a window's corner passes over an image.

A box is a rectangle of a tensor whose axes are evenly apart. Pixels (the engine's `im2col` mode) are what a convolution
takes: a fused axis of images, lines and columns of the output walks over the input, in steps of the stride, and begins
at each line anew; where the window reaches past a border there are zeros. Channels lie innermost, images outermost.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from autosched.ir.value import Read
from autosched.logic import TRUE, Affine, Bool, Const, Int, Var, affine, all_of, conjuncts, evaluate, free_vars
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps.gpu.block_tile import gpu_pair
from autosched.tiling.steps.gpu.operands.operand_paths import (
    CHUNK_BYTES,
    MOST_DIMENSIONS,
    aligned_bytes,
    along,
    depth_slices,
    element_offset,
    layout_major,
    memory_major,
    steps_of,
)

CORNERS = {3: 2**15, 4: 2**7, 5: 2**4}
"""A corner of a window's places, of a tensor of so many dimensions, is at least minus this and less than this."""
OFFSETS = {3: 2**16, 4: 2**8, 5: 2**5}
"""What the window's inside adds to it is less than this (CUDA driver API, cuTensorMapEncodeIm2col; PTX ISA)."""
MOST_STEP = 8
"""Elements from one pixel to the next, at most."""
MOST_POINTS = 2**22
"""Places at which a guard is compared with a tensor's bounds."""


@dataclass(frozen=True)
class PixelDimension:
    """A dimension between channels and images. The window's corner passes `lower`, `lower + step`, … up to
    `extent - 1 + upper`; `inside` (of the reduction axes, 0 at least) is added for an element inside the window.
    `member` is the program axis that counts the places, from `first` on; none where there is one place."""

    extent: int
    stride: int
    lower: int
    upper: int
    step: int
    member: str | None
    first: int
    inside: Int


@dataclass(frozen=True)
class Pixels:
    """An operand as pixels: its dimensions from the innermost out, then images (`count` of them, `stride` elements
    apart, numbered by `image`; None where only the first is read). Of all `channels` a product takes those from `group`
    on (of spatial axes that a block does not move along)."""

    dimensions: tuple[PixelDimension, ...]
    count: int
    stride: int
    image: str | None
    channels: int
    group: Int


def no_bulk_copy(nest: Nest, operand: str) -> str:
    """Why TMA can fetch neither boxes nor pixels of the operand; empty where it can."""
    if why := no_box(nest, operand):
        return "" if pixels_of(nest, operand) else why
    return ""


@of_nest
def no_box(nest: Nest, operand: str) -> str:
    """Why TMA cannot fetch boxes of the operand; empty where it can."""
    if operand in nest.computed:
        return "it is computed on the way"
    if nest.guarded[operand] != TRUE:
        return "its elements are guarded"
    offset = element_offset(nest, operand)
    if why := _no_rows(nest, operand):
        return why
    if len([a for a in nest.operand_axes(operand) if max(a.extent, a.unit) > 1]) > MOST_DIMENSIONS:
        return f"it has more than {MOST_DIMENSIONS} dimensions"
    if evaluate(offset, dict.fromkeys(free_vars(offset), 0)) != 0:
        return "it does not begin where its tensor does"
    for axis in nest.operand_axes(operand):
        steps = np.unique(np.diff(along(offset, axis)))
        if len(steps) > 1:
            return f"its rows along {axis.name} are not evenly apart"
        if len(steps) and not steps[0]:
            return f"its rows along {axis.name} are one and the same"
    return ""


def _no_rows(nest: Nest, operand: str) -> str:
    major = layout_major(nest, operand)
    if major is not memory_major(nest, operand):
        return f"it is to run along {major.name} and does not in memory"
    return "" if aligned_bytes(nest, operand) >= CHUNK_BYTES else "its rows are not apart by multiples of 16 bytes"


@of_nest
def pixels_of(nest: Nest, operand: str) -> Pixels | None:
    """How the engine sees the operand as pixels, or None where it cannot."""
    if operand in nest.computed:
        return None
    read = nest.mapping.operands[operand]
    extents = nest.mapping.program.tensors[read.tensor].extents
    rank, forms = len(extents), _forms(read)
    if rank not in CORNERS or forms is None or _no_rows(nest, operand):
        return None
    channel = layout_major(nest, operand)
    if channel is not nest.depth or len(channel.members) > 1:
        return None
    group = _group(nest, channel, forms[-1])
    if group is None:
        return None
    spatial = {m: a for a in nest.spatial for m, _, _ in a.members}
    movers = [[v for v in form.coefficients if v in spatial] for form in forms[:-1]]
    if any(len(m) > 1 for m in movers) or channel.members[0][1]:
        return None
    moved = [m[0] if m else None for m in movers]
    if not _walks(nest, moved, [spatial[m] if m else None for m in moved]):
        return None
    if forms[0] != Affine({moved[0]: 1} if moved[0] else {}):
        return None
    strides = steps_of(extents)
    places = [_dimension(nest, extents[d], strides[d], forms[d], moved[d], rank) for d in range(rank - 2, 0, -1)]
    found = tuple(p for p in places if p is not None)
    if len(found) < rank - 2 or not _zeros_outside(nest, operand, read, extents):
        return None
    return Pixels(found, extents[0], strides[0], moved[0], extents[-1], group)


def _group(nest: Nest, channel: NestAxis, form: Affine) -> Int | None:
    """Where the channels of a product begin; None where they are not neighbours, differ within a block, or where a
    slice of them would end in another group: there the engine knows of no zeros."""
    own = channel.members[0][0]
    rest = {n: c for n, c in form.coefficients.items() if n != own}
    fixed = {m for a in nest.spatial if a not in gpu_pair(nest) and not a.intrinsic_axis for m, _, _ in a.members}
    if form.coefficient(own) != 1 or form.constant or not rest.keys() <= fixed:
        return None
    if rest and (channel.extent % channel.unit or any(channel.units % n for n in depth_slices(channel))):
        return None
    start: Int = Const(0)
    for name, coefficient in rest.items():
        start = start + Var(name) * coefficient
    return start


def _forms(read: Read) -> list[Affine] | None:
    forms = [affine(i) if isinstance(i, Int) else None for i in read.index]
    return [f for f in forms if f is not None] if None not in forms else None


def _walks(nest: Nest, moved: list[str | None], axes: list[NestAxis | None]) -> bool:
    """Whether one pixel of an instruction follows another as the engine walks: its axis has the program axes that move
    (`moved`) some of the dimensions, in their order, and dimensions between them have one place only."""
    axis = next((a for a in reversed(axes) if a is not None and a.intrinsic_axis is not None), None)
    if axis is None:
        return False
    own = [k for k, a in enumerate(axes) if a is axis]
    if [moved[k] for k in own] != [m for m, _, _ in axis.members]:
        return False
    others = [moved[k] for k in range(own[0], len(axes)) if k not in own]
    return all(m is None or nest.ranges[m][0] == nest.ranges[m][1] for m in others)


def _dimension(
    nest: Nest, extent: int, stride: int, form: Affine, member: str | None, rank: int
) -> PixelDimension | None:
    step = form.coefficient(member) if member else 1
    low, high = nest.ranges[member] if member else (0, 0)
    inside: Int = Const(0)
    least, most = 0, 0
    for name, coefficient in form.coefficients.items():
        if name == member:
            continue
        ends = [coefficient * e for e in nest.ranges[name]]
        least, most = least + min(ends), most + max(ends)
        inside = inside + Var(name) * coefficient
    lower = form.constant + least + step * low
    upper = lower + step * (high - low) - (extent - 1)
    corners = all(-CORNERS[rank] <= c < CORNERS[rank] for c in (lower, upper))
    if not corners or most - least >= OFFSETS[rank] or not 1 <= step <= MOST_STEP or extent + upper <= lower:
        return None
    return PixelDimension(extent, stride, lower, upper, step, member, low, inside - least)


def _zeros_outside(nest: Nest, operand: str, read: Read, extents: tuple[int, ...]) -> bool:
    """Whether the operand's guards say just this: its element is inside its tensor."""
    index = [i for i in read.index if isinstance(i, Int)]
    bounds = [part for i, n in zip(index, extents, strict=True) for part in (i >= 0, i < n)]
    guards = list(conjuncts(nest.guarded[operand]))
    while bounds or guards:
        names = set(free_vars((bounds or guards)[0]))
        while more := set().union(*(v for p in (*bounds, *guards) if (v := free_vars(p)) & names)) - names:
            names |= more
        mine = [[p for p in parts if free_vars(p) <= names] for parts in (bounds, guards)]
        bounds = [p for p in bounds if p not in mine[0]]
        guards = [p for p in guards if p not in mine[1]]
        if not _equal(nest, all_of(*mine[0]), all_of(*mine[1]), sorted(names)):
            return False
    return True


def _equal(nest: Nest, one: Bool, other: Bool, names: list[str]) -> bool:
    sides = [nest.ranges[n][1] - nest.ranges[n][0] + 1 for n in names]
    if prod(sides) > MOST_POINTS:
        return False
    grid = np.indices(sides, np.int64)
    env = {n: g + nest.ranges[n][0] for n, g in zip(names, grid, strict=True)}
    first, second = (np.broadcast_to(np.asarray(evaluate(c, env)), tuple(sides)) for c in (one, other))
    return bool(np.array_equal(first, second))
