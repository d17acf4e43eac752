"""Interleaving: a copy of an operand's tensor in which the elements that an intrinsic reduces over lie side by side.

An intrinsic that multiplies groups of 4 (or pairs) along a reduction reads them as one word. Where the tensor has that
axis outside its last dimension (channels before width, an untransposed `B[k, n]`), the copy `X[…, c // 4, …, c % 4]`
makes each group contiguous, at the cost of one pass over the tensor, and every window of a convolution shares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autosched.logic import TRUE, Const, Int, Var, evaluate, free_vars, merge_dimensions, row_major
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps.common.layout import RUN_ELEMENTS, contiguous, even_rows, pads, tensor_extents, vectorises
from autosched.tiling.steps.cpu.fills import reach_ends, spans

COPIED_BYTES = 64
"""Bytes that one step of a copy moves (`codegen/lower/common/operands/padded_copy.py`)."""


@dataclass(frozen=True)
class Interleave:
    """`size` neighbours along dimension `dim` of the tensor become the copy's last dimension. `axis` is the nest axis
    that walks them, `intrinsic_axis` the intrinsic's."""

    dim: int
    size: int
    axis: str
    intrinsic_axis: str

    def group(self, unit: Int, lanes: Mapping[str, Int], nest: Nest) -> Int:
        """Which group an element of the register is in, whose first one stands at `unit` of the axis."""
        groups = nest.by_name[self.axis].unit // self.size
        return unit if groups == 1 else unit * groups + lanes[self.intrinsic_axis] // self.size

    def member(self, lanes: Mapping[str, Int], nest: Nest) -> Int:
        """Which member of its group it is."""
        inside = lanes[self.intrinsic_axis]
        return inside if nest.by_name[self.axis].unit == self.size else inside % self.size


@of_nest
def interleave(nest: Nest, operand: str) -> Interleave | None:
    """How an operand's tensor is interleaved so that its registers fill by vector loads, splats or groups; None where
    the tensor does already, or no such copy helps."""
    if vectorises(nest, operand):
        return None
    if nest.guarded[operand] != TRUE and not pads(nest, operand):
        return None
    read = nest.mapping.operands[operand]
    known = nest.mapping.program.known(read.tensor)
    if nest.intrinsic.matrices is not None and (known or not reach_ends(nest, operand)):
        return None  # constants are laid out in the order of use; matrices are loaded whole
    names = nest.intrinsic.operand_axes[operand]
    for axis in nest.reduction:
        if axis.intrinsic_axis not in names or axis.unit < 2 or len(axis.members) != 1:
            continue
        (program_axis, lower, _), extents = axis.members[0], tensor_extents(nest, operand)
        dims = [d for d, i in enumerate(read.index) if isinstance(i, Int) and program_axis in free_vars(i)]
        if len(dims) != 1 or dims[0] == len(extents) - 1 or lower or read.index[dims[0]] != Var(program_axis):
            continue
        assert axis.intrinsic_axis is not None
        size = axis.unit if nest.intrinsic.matrices is None else _neighbours(nest, operand, axis.intrinsic_axis)
        found = Interleave(dims[0], size, axis.name, axis.intrinsic_axis)
        if nest.intrinsic.matrices is None:
            fills = contiguous(nest, operand, interleaved_offset(nest, operand, found, Var("e")))
        else:
            few = RUN_ELEMENTS * size * nest.intrinsic.operands[operand].dtype.bytes <= COPIED_BYTES
            fills = size > 1 and few and rows_of_groups(nest, operand, found) is not None
        if fills:
            return found
    return None


def _neighbours(nest: Nest, operand: str, intrinsic_axis: str) -> int:
    """How many elements along an axis of the intrinsic stand side by side, all over a register that holds a matrix."""
    n = nest.intrinsic.operands[operand].elements
    lanes = {"e": np.arange(n, dtype=np.int64)}
    places = {a: np.asarray(evaluate(c, lanes)) for a, c in nest.lane_coordinates(operand, Var("e")).items()}
    along = np.broadcast_to(places.pop(intrinsic_axis), (n,))
    size = 1
    while n % (2 * size) == 0:
        groups = along.reshape(-1, 2 * size)
        even = np.array_equal(groups, groups[:, :1] + np.arange(2 * size)) and not np.any(groups[:, 0] % (2 * size))
        if not even or any(np.any(np.diff(p.reshape(-1, 2 * size))) for p in places.values() if p.ndim):
            break
        size *= 2
    return size


@of_nest
def rows_of_groups(nest: Nest, operand: str, how: Interleave) -> int | None:
    """`rows_apart` in the interleaved copy."""
    return even_rows(nest, operand, interleaved_offset(nest, operand, how, Var("e")))


def interleaved_offset(nest: Nest, operand: str, how: Interleave, element: Int) -> Int:
    """Row-major offset in the copy (its border's beginning aside) of a register's element."""
    read = nest.mapping.operands[operand]
    lanes = nest.lane_coordinates(operand, element)
    positions: dict[str, Int] = {}
    for axis in nest.axes:
        positions[axis.name] = Var(f"@{axis.name}") * axis.unit + lanes.get(axis.intrinsic_axis or "", Const(0))
    values = nest.at(positions)
    parts, extents = list[Int](), list[int]()
    for d, (part, (low, high)) in enumerate(zip(read.index, spans(nest, operand, how.axis), strict=True)):
        assert isinstance(part, Int)
        extent = high - min(0, low) + 1
        parts.append(how.group(Var(f"@{how.axis}"), lanes, nest) if d == how.dim else substitute_int(part, values))
        extents.append(extent if d != how.dim else -(-extent // how.size))
    placed, shape = tuple(parts), tuple(extents)
    if nest.intrinsic.matrices is not None:
        placed, shape = merge_dimensions(placed, shape)
    return row_major(placed, shape) * how.size + how.member(lanes, nest)
