"""Interleaving: a copy of an operand's tensor in which the elements that an intrinsic reduces over lie side by side.

An intrinsic that multiplies groups of 4 (or pairs) along a reduction reads them as one word. Where the tensor has that
axis outside its last dimension (channels before width, an untransposed `B[k, n]`), the copy `X[…, c // 4, …, c % 4]`
makes each group contiguous, at the cost of one pass over the tensor, and every window of a convolution shares it.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.logic import TRUE, Const, Int, Var, free_vars
from autosched.logic.walk import substitute_int
from autosched.tiling.nest import Nest
from autosched.tiling.remember import of_nest
from autosched.tiling.steps.layout import contiguous, pads, tensor_extents, vectorises


@dataclass(frozen=True)
class Interleave:
    """`size` neighbours along dimension `dim` of the tensor become the copy's last dimension. `axis` is the nest axis
    that walks them, `intrinsic_axis` the intrinsic's."""

    dim: int
    size: int
    axis: str
    intrinsic_axis: str


@of_nest
def interleave(nest: Nest, operand: str) -> Interleave | None:
    """How an operand's tensor is interleaved so that its registers fill by vector loads, splats or groups; None where
    the tensor does already, no such copy helps, or registers hold matrices."""
    if nest.intrinsic.matrices is not None or vectorises(nest, operand):
        return None
    if nest.guarded[operand] != TRUE and not pads(nest, operand):
        return None
    read = nest.mapping.operands[operand]
    names = nest.intrinsic.operand_axes[operand]
    for axis in nest.reduction:
        if axis.intrinsic_axis not in names or axis.unit < 2 or len(axis.members) != 1:
            continue
        (program_axis, lower, _), extents = axis.members[0], tensor_extents(nest, operand)
        dims = [d for d, i in enumerate(read.index) if isinstance(i, Int) and program_axis in free_vars(i)]
        if len(dims) != 1 or dims[0] == len(extents) - 1 or lower or read.index[dims[0]] != Var(program_axis):
            continue
        assert axis.intrinsic_axis is not None
        found = Interleave(dims[0], axis.unit, axis.name, axis.intrinsic_axis)
        if contiguous(nest, operand, interleaved_offset(nest, operand, found, Var("e"))):
            return found
    return None


def interleaved_offset(nest: Nest, operand: str, how: Interleave, element: Int) -> Int:
    """Row-major offset in the copy (its extents taken as the tensor's) of a register's element."""
    read = nest.mapping.operands[operand]
    lanes = nest.lane_coordinates(operand, element)
    positions: dict[str, Int] = {}
    for axis in nest.axes:
        positions[axis.name] = Var(f"@{axis.name}") * axis.unit + lanes.get(axis.intrinsic_axis or "", Const(0))
    values, offset = nest.at(positions), Const(0) + 0
    for d, (part, extent) in enumerate(zip(read.index, tensor_extents(nest, operand), strict=True)):
        assert isinstance(part, Int)
        place = Var(f"@{how.axis}") if d == how.dim else substitute_int(part, values)
        offset = offset * (extent if d != how.dim else -(-extent // how.size)) + place
    return offset * how.size + lanes[how.intrinsic_axis]
