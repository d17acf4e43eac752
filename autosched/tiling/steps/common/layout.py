"""How an operand lies in its tensor: offsets of a register's elements, whether one load fills it, sizes of copies."""

from __future__ import annotations

from itertools import pairwise
from math import gcd, prod

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
    row_major,
)
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis

RUN_ELEMENTS = 4
"""Elements that a run has on average at least, so that loading runs and shuffling pays."""


@of_nest
def flat_offset(nest: Nest, operand: str, element: Int) -> Int:
    """Row-major offset of an operand's register element; `@axis` variables are positions of the tile's origin."""
    return offset_within(nest, operand, element, tensor_extents(nest, operand))


def offset_within(nest: Nest, operand: str, element: Int, extents: tuple[int, ...]) -> Int:
    """The same in an array of these extents that has the tensor's elements where the tensor has them."""
    read = nest.mapping.operands[operand]
    lanes = nest.lane_coordinates(operand, element)
    positions: dict[str, Int] = {}
    for axis in nest.axes:
        inside = lanes.get(axis.intrinsic_axis or "", Const(0))
        positions[axis.name] = Var(f"@{axis.name}") * axis.unit + inside
    values = nest.at(positions | {n: lanes[n] for n in nest.intrinsic.selected if n in lanes})
    placed = [substitute_int(part, values) for part in read.index if isinstance(part, Int)]
    return row_major(*merge_dimensions(placed, extents))


def filled(nest: Nest, operand: str) -> int:
    """Elements of a register that are filled at a time: all, or one row of one that holds a matrix."""
    matrices, o = nest.intrinsic.matrices, nest.intrinsic.operands[operand]
    return o.elements if matrices is None else matrices.row_elements(o.dtype)


def rows_held(nest: Nest, operand: str) -> int:
    """Rows of a register that holds a matrix."""
    return nest.intrinsic.operands[operand].elements // filled(nest, operand)


@of_nest
def rows_apart(nest: Nest, operand: str) -> int | None:
    """Elements in the operand's tensor from one row of a register that holds a matrix to the next, where each row's
    elements are neighbours, and wherever the tile is; None where it is not so."""
    return even_rows(nest, operand, flat_offset(nest, operand, Var("e")))


def even_rows(nest: Nest, operand: str, offset: Int) -> int | None:
    """The same where the register's element `e` lies at `offset`."""
    matrices, n = nest.intrinsic.matrices, nest.intrinsic.operands[operand].elements
    if matrices is None or any(affine(substitute_int(offset, {"e": e})) is None for e in (0, n - 1)):
        return None  # a fused axis that breaks inside a tile
    names = sorted(free_vars(offset) - {"e"})
    lanes = np.arange(n, dtype=np.int64)
    there = [np.asarray(evaluate(offset, {"e": lanes} | env)) for env in (dict.fromkeys(names, 0), _places(names))]
    first, second = (np.broadcast_to(o, (n,)) - int(o.flat[0]) for o in there)
    width = filled(nest, operand)
    apart = int(first[width]) if n > width else width
    even = np.array_equal(first, lanes // width * apart + lanes % width)
    return apart if even and np.array_equal(first, second) else None


@of_nest
def vectorises(nest: Nest, operand: str) -> bool:
    """Whether the elements of a register (of one row, where it holds a matrix) are contiguous in memory, all one
    element, or a repeated contiguous group."""
    offset = flat_offset(nest, operand, Var("e"))
    return contiguous(nest, operand, offset if nest.intrinsic.matrices is None else _in_a_row(nest, operand))


def _in_a_row(nest: Nest, operand: str) -> Int:
    """`flat_offset` of element `e` of a row, wherever the row is along axes that do not move within it: those may be
    fused of several."""
    n, read = filled(nest, operand), nest.mapping.operands[operand]
    lanes = nest.lane_coordinates(operand, Var("e"))
    values: dict[str, Int] = {}
    for axis in nest.axes:
        inside = lanes.get(axis.intrinsic_axis or "", Const(0))
        along = np.broadcast_to(np.asarray(evaluate(inside, {"e": np.arange(n, dtype=np.int64)})), (n,))
        moves = bool(np.any(along != along[0]))
        values |= axis.program_values(Var(f"@{axis.name}") * axis.unit + inside) if moves else {}
    placed = [substitute_int(part, values) for part in read.index if isinstance(part, Int)]
    return row_major(*merge_dimensions(placed, tensor_extents(nest, operand)))


@of_nest
def contiguous(nest: Nest, operand: str, offset: Int) -> bool:
    """Whether `offset`, of a register's element `e`, runs on by one, stays, or repeats a run, wherever the tile is."""
    n = filled(nest, operand)
    if any(affine(substitute_int(offset, {"e": e})) is None for e in (0, n - 1)):
        return False  # a fused axis that breaks inside a tile
    env: dict[str, object] = dict.fromkeys(free_vars(offset), 0)
    steps = np.asarray(evaluate(offset, env | {"e": np.arange(n, dtype=np.int64)}))
    steps = np.broadcast_to(steps, (n,)) - int(np.min(steps))
    group = int(np.max(steps)) + 1
    return bool(np.array_equal(steps, np.arange(n) % group))


@of_nest
def runs(nest: Nest, operand: str) -> int | None:
    """How many runs of neighbours in memory (or vectors, over strided ones) hold the register's elements, where that is
    few enough (a quarter of the elements) to load each whole and shuffle, and the same wherever the tile is; else None.
    """
    n = filled(nest, operand)
    offset = flat_offset(nest, operand, Var("e"))
    if any(affine(substitute_int(offset, {"e": e})) is None for e in (0, n - 1)):
        return None  # a fused axis that breaks inside a tile
    names = sorted(free_vars(offset) - {"e"})
    lanes = np.arange(n, dtype=np.int64)
    there = [np.asarray(evaluate(offset, {"e": lanes} | env)) for env in (dict.fromkeys(names, 0), _places(names))]
    first, second = (np.broadcast_to(o, (n,)) - int(o.flat[0]) for o in there)
    if not np.array_equal(first, second):
        return None
    places = np.unique(first).tolist()
    found = 1 + sum(b - a > 1 for a, b in pairwise(places))
    reach = places[-1] - places[0] + 1
    if n < reach <= 4 * n:
        found = min(found, -(-reach // n))  # strided: whole vectors over the span
    return found if RUN_ELEMENTS * found <= n else None


@of_nest
def scattered(nest: Nest, operand: str) -> bool:
    """Whether lanes are neither neighbours in memory nor runs of different neighbours, which masked loads bring."""
    if vectorises(nest, operand):
        return False
    offset = flat_offset(nest, operand, Var("e"))
    n = filled(nest, operand)
    there = evaluate(offset, dict.fromkeys(free_vars(offset), 0) | {"e": np.arange(n, dtype=np.int64)})
    places = np.unique(np.broadcast_to(np.asarray(there), (n,)))
    parts = 1 + int(np.count_nonzero(np.diff(places) > 1))
    return len(places) < n or RUN_ELEMENTS * parts > n


@of_nest
def depth_stride(nest: Nest, operand: str) -> int:
    """Elements between a register and the next along the depth, in the operand's tensor; 0 where that varies."""
    form = affine(substitute_int(flat_offset(nest, operand, Var("e")), {"e": 0}))
    return 0 if form is None or nest.depth is None else abs(form.coefficient(f"@{nest.depth.name}"))


@of_nest
def row_stride(nest: Nest, operand: str, axis: NestAxis) -> int:
    """Bytes between an operand's register and the next along the axis, in its tensor; 0 where that varies."""
    form = affine(substitute_int(flat_offset(nest, operand, Var("e")), {"e": 0}))
    size = nest.intrinsic.operands[operand].dtype.bytes
    return 0 if form is None else abs(form.coefficient(f"@{axis.name}")) * size


def _places(names: list[str]) -> dict[str, int]:
    """A tile's origin somewhere, different along each axis."""
    return {name: 3 + 2 * k for k, name in enumerate(names)}


@of_nest
def line_crossings(nest: Nest, operand: str, line: int) -> float:
    """The share of an operand's vector loads that touch two cache lines (of `line` bytes), over all places of a tile; 0
    where a register is not one load, or its address is not known so well."""
    return crossings(nest, operand, flat_offset(nest, operand, Var("e")), line)


def crossings(nest: Nest, operand: str, offset: Int, line: int) -> float:
    """The same where the register's element `e` lies at `offset`."""
    form = affine(substitute_int(offset, {"e": 0}))
    if form is None or not contiguous(nest, operand, offset):
        return 0.0
    spec = nest.intrinsic.operands[operand]
    env: dict[str, object] = dict.fromkeys(free_vars(offset), 0)
    steps = np.asarray(evaluate(offset, env | {"e": np.arange(filled(nest, operand), dtype=np.int64)}))
    reach = (int(np.max(steps)) - int(np.min(steps)) + 1) * spec.dtype.bytes
    moving = {f"@{a.name}" for a in nest.axes if a.units > 1}
    rows = (even_rows(nest, operand, offset) or 0) * spec.dtype.bytes
    apart = gcd(line, rows, *(c * spec.dtype.bytes for name, c in form.coefficients.items() if name in moving))
    starts = [(form.constant * spec.dtype.bytes + k * apart) % line for k in range(line // apart)]
    return sum(start + reach > line for start in starts) / len(starts) if reach <= line else 1.0


def tensor_extents(nest: Nest, operand: str) -> tuple[int, ...]:
    """The shape of the tensor that the operand reads."""
    return nest.mapping.program.tensors[nest.mapping.operands[operand].tensor].extents


def tensor_elements(nest: Nest, operand: str) -> int:
    """Elements of the tensor that the operand reads."""
    return prod(tensor_extents(nest, operand))


@of_nest
def panel_elements(nest: Nest, operand: str) -> int:
    """Elements of a panel: one for each point of the axes that the operand depends on, padded to whole units."""
    total = register_elements(nest, operand)
    for axis in nest.operand_axes(operand):
        total *= axis.units
    return total


def register_elements(nest: Nest, operand: str) -> int:
    """Elements of a register that are told apart: one for each point of the axes that the operand depends on, or all
    of a windowed operand's."""
    if operand in nest.intrinsic.windows:
        return nest.intrinsic.operands[operand].elements
    return prod(axis.unit for axis in nest.operand_axes(operand))


@of_nest
def pads(nest: Nest, operand: str) -> bool:
    """Whether the operand's guard is exactly "the address is inside the tensor".

    Sound and simple: each comparison of the guard must be implied by some subscript's range check, and every subscript
    that can leave its dimension must be checked on that side.
    """
    read = nest.mapping.operands[operand]
    tensor = nest.mapping.program.tensors[read.tensor]
    wanted = set()
    ranges = nest.mapping.program.symbolic | nest.ranges
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
