"""How an operand lies in its tensor: offsets of a register's elements, whether one load fills it, sizes of copies."""

from __future__ import annotations

from math import prod

import numpy as np

from autosched.logic import (
    Compare,
    Const,
    Int,
    Var,
    affine,
    conjuncts,
    evaluate,
    free_vars,
    interval,
    merge_dimensions,
)
from autosched.logic.expr import substitute_int
from autosched.tiling.nest import Nest


def flat_offset(nest: Nest, operand: str, element: Int) -> Int:
    """Row-major offset of an operand's register element; `@axis` variables are positions of the tile's origin."""
    read = nest.mapping.operands[operand]
    lanes = nest.lane_coordinates(operand, element)
    positions: dict[str, Int] = {}
    for axis in nest.axes:
        inside = lanes.get(axis.intrinsic_axis or "", Const(0))
        positions[axis.name] = Var(f"@{axis.name}") * axis.unit + inside
    values = nest.at(positions)
    placed = [substitute_int(part, values) for part in read.index if isinstance(part, Int)]
    parts, extents = merge_dimensions(placed, tensor_extents(nest, operand))
    offset: Int = Const(0)
    for part, extent in zip(parts, extents, strict=True):
        offset = offset * extent + part
    return offset


def vectorises(nest: Nest, operand: str) -> bool:
    """Whether the register's elements are contiguous in memory, all one element, or a repeated contiguous group."""
    return contiguous(nest, operand, flat_offset(nest, operand, Var("e")))


def contiguous(nest: Nest, operand: str, offset: Int) -> bool:
    """Whether `offset`, of a register's element `e`, runs on by one, stays, or repeats a run, wherever the tile is."""
    n = nest.intrinsic.operands[operand].elements
    if any(affine(substitute_int(offset, {"e": e})) is None for e in (0, n - 1)):
        return False  # a fused axis that breaks inside a tile
    env: dict[str, object] = dict.fromkeys(free_vars(offset), 0)
    steps = np.asarray(evaluate(offset, env | {"e": np.arange(n, dtype=np.int64)}))
    steps = np.broadcast_to(steps, (n,)) - int(np.min(steps))
    group = int(np.max(steps)) + 1
    return bool(np.array_equal(steps, np.arange(n) % group))


def tensor_extents(nest: Nest, operand: str) -> tuple[int, ...]:
    """The shape of the tensor that the operand reads."""
    return nest.mapping.program.tensors[nest.mapping.operands[operand].tensor].extents


def tensor_elements(nest: Nest, operand: str) -> int:
    """Elements of the tensor that the operand reads."""
    return prod(tensor_extents(nest, operand))


def panel_elements(nest: Nest, operand: str) -> int:
    """Elements of a panel: one for each point of the axes that the operand depends on, padded to whole units."""
    total = 1
    for axis in nest.operand_axes(operand):
        total *= axis.units * axis.unit
    return total


def pads(nest: Nest, operand: str) -> bool:
    """Whether the operand's guard is exactly "the address is inside the tensor".

    Sound and simple: each comparison of the guard must be implied by some subscript's range check, and every subscript
    that can leave its dimension must be checked on that side.
    """
    read = nest.mapping.operands[operand]
    tensor = nest.mapping.program.tensors[read.tensor]
    wanted = set()
    ranges = nest.ranges
    for part, extent in zip(read.index, tensor.extents, strict=True):
        assert isinstance(part, Int)
        low, high = interval(part, ranges)
        if low < 0:
            wanted.add(_normal(part))
        if high >= extent:
            wanted.add(_normal(extent - 1 - part))
    stated = set()
    for p in conjuncts(nest.guarded[operand]):
        if not isinstance(p, Compare):
            return False
        difference = {
            "<=": p.right - p.left,
            "<": p.right - p.left - 1,
            ">=": p.left - p.right,
            ">": p.left - p.right - 1,
        }
        if p.op not in difference:
            return False
        if interval(difference[p.op], ranges)[0] < 0:
            stated.add(_normal(difference[p.op]))
    return None not in wanted | stated and stated == wanted


def _normal(difference: Int) -> tuple[tuple[tuple[str, int], ...], int] | None:
    form = affine(difference)
    return None if form is None else (tuple(sorted(form.coefficients.items())), form.constant)
