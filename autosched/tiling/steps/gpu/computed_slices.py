"""Operands that a block of a GPU computes on the way. Threads that fill a slice in shared memory, or load fragments,
read narrow data from memory and compute each element.

    b = (f32(W[p, j]) - f32(Z[p // 128, j])) * S[p // 128, j]      memory has W, Z and S; shared memory, or registers, b
"""

from __future__ import annotations

from math import prod

from autosched.ir.value import Call, Cast, Read, walk
from autosched.logic import Const
from autosched.machine.target import Target
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps.gpu.operand_sources import sources

FUNCTION = 8
"""Instructions of a function (`exp`, `rsqrt`)."""
BYTE = 8


def computable(nest: Nest, operand: str, target: Target) -> bool:
    """Whether a block can compute the operand on the way. Elements below a byte share words of a fragment."""
    spec = nest.intrinsic.operands[operand]
    return spec.dtype.bits >= BYTE and nest.depth is not None and bool(sources(nest, operand, target))


@of_nest
def source_bytes(nest: Nest, operand: str) -> float:
    """Bytes of memory behind one element of the operand: of a computed one those of all that it is computed from, where
    each is read as often as the operand would be."""
    tensors, read = nest.mapping.program.tensors, nest.mapping.operands[operand]
    if operand not in nest.computed:
        return nest.intrinsic.operands[operand].dtype.bits / BYTE
    whole = _elements(nest, read.tensor)
    names = dict.fromkeys(r.tensor for r in nest.computed[operand].sources)
    return sum(min(_elements(nest, n), whole) * tensors[n].dtype.bytes for n in names) / whole


@of_nest
def operations(nest: Nest, operand: str) -> int:
    """Instructions of a thread for one element of a computed operand, its loads and the store aside; 0 for others."""
    if operand not in nest.computed:
        return 0
    value = nest.computed[operand].value
    return sum(FUNCTION if isinstance(v, Call) else 1 for v in walk(value) if not isinstance(v, Read | Cast)) + sum(
        isinstance(v, Cast) and v.operand.dtype != v.dtype for v in walk(value)
    )


@of_nest
def loads(nest: Nest, operand: str) -> int:
    """Elements that are read for one element of the operand."""
    return len(nest.computed[operand].sources) if operand in nest.computed else 1


def _elements(nest: Nest, tensor: str) -> int:
    shape = nest.mapping.program.tensors[tensor].shape
    return prod(n.value for n in shape if isinstance(n, Const)) or 1
