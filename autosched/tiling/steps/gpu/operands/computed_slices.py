"""Operands that a block of a GPU computes on the way. Threads that fill a slice in shared memory, or load fragments,
read narrow data from memory and compute each element.

    b = (f32(W[p, j]) - f32(Z[p // 128, j])) * S[p // 128, j]      memory has W, Z and S; shared memory, or registers, b
"""

from __future__ import annotations

from math import prod

from autosched.ir.value import Call, Cast, Literal, Read, Value, is_plain, walk
from autosched.logic import Const, Int, ceil_div
from autosched.machine.target import Target
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps.gpu.operands.operand_paths import read_together
from autosched.tiling.steps.gpu.operands.operand_sources import sources
from autosched.tiling.steps.gpu.operands.shared_layout import chunk_elements, slice_axes, slice_extent

FUNCTION = 8
"""Instructions of a function (`exp`, `rsqrt`)."""
BYTE = 8
GROUPED = 4
"""Elements of an operand that share one of what it is made of, from which on that stays for a group of them."""
KEPT = 0.25
"""Of the elements that a thread computes of a slice, those for which it loads what a group of them shares: it stores
four runs of neighbours or more, one below the other."""


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
def operations(nest: Nest, operand: str) -> float:
    """Instructions of a thread for one element of a computed operand, its loads and the store aside; 0 for others."""
    if operand not in nest.computed:
        return 0.0
    return sum(_instructions(v) * _share(nest, operand, v) for v in walk(nest.computed[operand].value))


@of_nest
def loads(nest: Nest, operand: str) -> float:
    """Loads of a thread for as many neighbours of the operand as it stores at once, each as wide as these are; 1 of an
    operand that is copied."""
    if operand not in nest.computed:
        return 1.0
    tensors, wide = nest.mapping.program.tensors, nest.intrinsic.operands[operand].dtype.bytes
    sources = nest.computed[operand].sources
    return sum(max(1.0, tensors[r.tensor].dtype.bytes / wide) * _share(nest, operand, r) for r in sources)


@of_nest
def fetched_raw(nest: Nest, operand: str) -> tuple[Read, ...]:
    """Of what a computed operand is made of, the elements that copies which run on fetch ahead, as they are: each of
    the operand's has its own, and neighbours have neighbours in memory. Only calls that run on take such slices: others
    load fragments ahead, from slices that are computed earlier."""
    if operand not in nest.computed or not nest.intrinsic.asynchronous:
        return ()
    tensors = nest.mapping.program.tensors
    whole = _elements(nest, nest.mapping.operands[operand].tensor)

    def moves(read: Read) -> bool:
        own = GROUPED * _elements(nest, read.tensor) > whole
        return own and is_plain(read.index) and read_together(nest, operand, read, tensors[read.tensor].dtype.bytes)

    return tuple(r for r in nest.computed[operand].sources if moves(r))


def raw_bytes(nest: Nest, operand: str, pair: tuple[NestAxis, ...], names: StepNames) -> Int:
    """Bytes in shared memory of what is fetched ahead for one slice: rows of whole chunks of the operand."""
    chunk = chunk_elements(nest.intrinsic.operands[operand].dtype.bits)
    *rows, row = (slice_extent(nest, a, pair, names) for a in slice_axes(nest, operand))
    each = sum(nest.mapping.program.tensors[r.tensor].dtype.bytes for r in fetched_raw(nest, operand))
    total = ceil_div(row, chunk) * (chunk * each)
    for extent in rows:
        total = total * extent
    return total


@of_nest
def sources_read(nest: Nest, operand: str) -> int:
    """Elements that are read for one element of a computed operand; 0 for others."""
    return len(nest.computed[operand].sources) if operand in nest.computed else 0


def _instructions(value: Value) -> int:
    match value:
        case Read() | Literal():
            return 0
        case Cast(inner, dtype):
            return int(inner.dtype != dtype)
        case Call(function):
            return 0 if function.startswith("bits_") else FUNCTION
    return 1


def _share(nest: Nest, operand: str, value: Value) -> float:
    """How often a thread computes the value for each element: less where it is the same for a group of them."""
    read = [v.tensor for v in walk(value) if isinstance(v, Read)]
    whole = _elements(nest, nest.mapping.operands[operand].tensor)
    kept = read and GROUPED * max(_elements(nest, name) for name in read) <= whole
    return KEPT if kept else 1.0


def _elements(nest: Nest, tensor: str) -> int:
    shape = nest.mapping.program.tensors[tensor].shape
    return prod(n.value for n in shape if isinstance(n, Const)) or 1
