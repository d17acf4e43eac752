"""What TMA can fetch of a window of a tensor: the boxes of the window. Where the window begins is one more dimension of
their map, so that what lies behind the window's end is not fetched: zeros are there, as behind a tensor's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from autosched.logic import Affine, Const, Int, affine
from autosched.tiling.analysis.windows import TensorWindow
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps.gpu.operands.operand_paths import (
    CHUNK_BYTES,
    MOST_DIMENSIONS,
    along,
    element_offset,
    layout_major,
    steps_of,
)
from autosched.tiling.steps.gpu.operands.tma_boxes import no_box

MOST_COORDINATE = 2**31


@dataclass(frozen=True)
class WindowStart:
    """A window begins at the `number`-th of elements that are `every` apart; there are `count` of them."""

    number: Int
    every: int
    count: int

    @staticmethod
    def of(window: TensorWindow, inside: Sequence[int], extents: Sequence[int]) -> WindowStart | None:
        """That of a window, of the extents `inside`, of a tensor of these extents; None where it begins with the
        tensor. A map ends where the last window does, which lies in the tensor."""
        sides = dict(zip(window.kept, inside, strict=True))
        terms: list[tuple[Int, int]] = []
        last = 0
        for d, (start, step) in enumerate(zip(window.start, steps_of(extents), strict=True)):
            whole, rest = _content(start)
            if rest != Const(0):
                terms.append((rest, whole * step))
                last += (extents[d] - sides.get(d, 1)) // whole * whole * step
        if not terms:
            return None
        every = gcd(*(step for _, step in terms))
        number: Int = Const(0)
        for rest, step in terms:
            number = number + rest * (step // every)
        return WindowStart(number, every, last // every + 1)


def steps_in_tensor(
    sides: Sequence[tuple[int, int]], window: TensorWindow, inside: Sequence[int], extents: Sequence[int]
) -> tuple[int, ...] | None:
    """The steps of `sides` (extent and step, in elements of a window of the extents `inside`), in elements of the
    tensor, of these `extents`; None where the elements of a side are not evenly apart there."""
    own, tensor = steps_of(inside), steps_of(extents)
    there = [tensor[d] for d in window.kept]
    if all(n == 1 or mine == other for n, mine, other in zip(inside, own, there, strict=True)):
        return tuple(step for _, step in sides)
    reached, found = [0] * len(inside), list[int]()
    for extent, step in sides:
        moved = 0
        for d, each in enumerate(own):
            count, step = divmod(step, each)
            reached[d] += count * (extent - 1)
            moved += count * there[d]
        found.append(moved)
    return tuple(found) if all(r < n for r, n in zip(reached, inside, strict=True)) else None


def no_box_of_window(nest: Nest, operand: str, window: TensorWindow | None, extents: Sequence[int]) -> str:
    """Why TMA cannot fetch boxes of the operand from a window of a tensor of these extents (None: the operand is no
    window); empty where it can."""
    if why := no_box(nest, operand):
        return why
    if window is None:
        return "it is what the block itself has made"
    read, offset = nest.mapping.operands[operand], element_offset(nest, operand)
    size = nest.intrinsic.operands[operand].dtype.bits // 8
    major = layout_major(nest, operand)
    axes = [a for a in nest.operand_axes(operand) if a.extent > 1 and a is not major]
    sides = [(a.extent, _step(offset, a)) for a in (major, *axes)]
    inside = nest.mapping.program.tensors[read.tensor].extents
    found = steps_in_tensor(sides, window, inside, extents)
    if found is None or found[0] != 1:
        return "its rows are not evenly apart in the tensor"
    if any(step * size % CHUNK_BYTES for step in found[1:]):
        return "its rows are not apart by multiples of 16 bytes in the tensor"
    start = WindowStart.of(window, inside, extents)
    if start is None:
        return ""
    if start.every * size % CHUNK_BYTES:
        return "windows begin at no multiples of 16 bytes"
    if len(sides) >= MOST_DIMENSIONS:
        return f"it has more than {MOST_DIMENSIONS - 1} dimensions beside its start"
    return "" if start.count < MOST_COORDINATE else "windows begin at more places than a coordinate can say"


def _step(offset: Int, axis: NestAxis) -> int:
    steps = along(offset, axis)
    return int(steps[1] - steps[0]) if len(steps) > 1 else 1


def _content(start: Int) -> tuple[int, Int]:
    """A start as a number times an integer expression, the number as great as the text of the start shows."""
    form = affine(start)
    if form is None:
        return 1, start
    values = [c for c in (form.constant, *form.coefficients.values()) if c]
    if not values:
        return 1, Const(0)
    whole = gcd(*values)
    each = {name: c // whole for name, c in form.coefficients.items()}
    return whole, Affine(each, form.constant // whole).expression
