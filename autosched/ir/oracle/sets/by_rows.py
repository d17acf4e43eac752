"""Data that differ from row to row: one end of their type or the other, one power of two or another, one sign.

Random terms of a sum cancel each other, and all have the same size. So a sum that wraps or is clamped, a start of a
maximum that is not the least number, a small addend that was forgotten stay unseen. Here all terms of one sum have the
same sign and size, and another sum of the same tensor has others: rows are taken along the dimensions of a tensor that
no stage sums over where it reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log2, prod
from typing import Any

import numpy as np

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Stage
from autosched.ir.oracle.assumed import integer_range
from autosched.ir.oracle.numerics import in_dtype, store
from autosched.ir.oracle.sets.deciding import nodes
from autosched.ir.program import Program
from autosched.ir.value import ROUNDING, Arith, Call, Cast, Read, is_value, reads, walk
from autosched.ir.variables import index_vars

FAR = 12
"""The greatest power of two that floats of 32 bits are multiplied with or divided by: products of four stay finite."""
ALONE = 96
"""The same where nothing is multiplied: a maximum whose start is no infinity."""
EXPONENT, EXPONENT_OF_SUM, EXPONENT_IN_F16 = 8, 2, 3
"""The same where `exp` is taken of inputs (less their maximum), of sums, or in a narrow type."""
MOST_SETS = 4


@dataclass(frozen=True)
class TensorRows:
    """The number of each element's row, in the tensor's shape or one that fits it; `axes` run through the rows."""

    number: Any
    count: int
    axes: frozenset[str] = frozenset()


def rows(program: Program, name: str, shape: tuple[int, ...]) -> TensorRows:
    """The rows of a tensor, by the first stage that reads it; one row for arrays of another shape than its own."""
    tensor = program.tensors[name]
    read = next(((s, r) for s in program.stages for r in _reads(s) if r.tensor == name), None)
    if read is None or shape != tensor.extents:
        return TensorRows(np.zeros((), np.int64), 1)
    stage, at = read
    kept = index_vars(stage.assign.index)
    number, count, axes = np.zeros((1,) * len(shape), np.int64), 1, set[str]()
    for d, (part, extent) in enumerate(zip(at.index, shape, strict=True)):
        used = frozenset[str]() if is_value(part) else index_vars((part,))
        if used and used <= kept:
            along = np.arange(extent).reshape([-1 if k == d else 1 for k in range(len(shape))])
            number, count, axes = number * extent + along, count * extent, axes | used
    return TensorRows(number, count, frozenset(axes))


@dataclass(frozen=True)
class IntegersByRows:
    """Tensors of integers, all elements of a row at one end of what they may be: every combination of the tensors'
    ends, as far as there are rows; those of tensors of one row (`single`) from one data set to the next. The tensors
    whose rows run along the same axes change ends after 1, 2, 4, … rows (`bits`)."""

    program: Program
    ends: Mapping[str, tuple[int, int]]
    rows: Mapping[str, TensorRows]
    bits: Mapping[str, int]
    single: tuple[str, ...]

    @staticmethod
    def of(program: Program, names: Iterable[str], drawn: Mapping[str, Any]) -> IntegersByRows:
        """Those of the names that may have several values."""
        ends = {n: integer_range(program, n) for n in names if not _through_bits(program, n)}
        ends = {n: (least, most) for n, (least, most) in ends.items() if least < most}
        found = {n: rows(program, n, np.shape(drawn[n])) for n in ends}
        bits: dict[str, int] = {}
        for n, own in found.items():
            bits[n] = sum(bool(found[other].axes & own.axes) for other in bits)
        single = tuple(n for n, own in found.items() if own.count < 2 << bits[n])
        return IntegersByRows(program, ends, found, bits, single)

    @property
    def sets(self) -> int:
        return min(MOST_SETS, 1 << len(self.single)) if self.ends else 0

    def arrays(self, drawn: Mapping[str, Any], number: int, strength: float) -> dict[str, Any]:
        """A data set; with less strength nearer to zero."""
        found = {}
        for n, (least, most) in self.ends.items():
            of_set = np.asarray(number >> self.single.index(n)) if n in self.single else None
            bit = self.rows[n].number >> self.bits[n] if of_set is None else of_set
            low = np.broadcast_to(bit % 2 == 1, np.shape(drawn[n]))
            kind = np.uint64 if self.program.tensors[n].dtype.name == "u64" else np.int64
            ends = weaker((least, most), strength)
            found[n] = store(np.where(low, kind(ends[0]), kind(ends[1])), self.program.tensors[n].dtype)
        return found


def weaker(ends: tuple[int, int], strength: float) -> tuple[int, int]:
    """The ends of a range, nearer to zero, or to what of the range is next to it."""
    if strength == 1.0:
        return ends
    base = min(max(ends[0], 0), ends[1])
    low, high = (base + int((end - base) * strength) for end in ends)
    return low, high


def floats_by_powers(
    program: Program, names: Sequence[str], drawn: Mapping[str, Any], strength: float, turn: int, signed: bool
) -> dict[str, Any]:
    """Floats times powers of two, row by row another; all of a row of one sign where they are `signed`. `strength` from
    1 to 0 says how far the powers go; `turn` is another for tensors of one row. Every other element is a multiple of
    one half where something is rounded to an integer."""
    arrays = {}
    rounds = any(_rounds(node) for s in program.stages for node in nodes(s))
    for number, name in enumerate(names):
        dtype = program.tensors[name].dtype
        up, down = (int(strength * e) for e in powers(program, dtype))
        own = rows(program, name, np.shape(drawn[name]))
        values = np.asarray(drawn[name]).astype(np.float64)
        row = np.minimum(own.number, own.count - 1 - own.number)  # the last ones, in ragged tiles, as the first
        row = row + (0 if own.count > 1 else turn)
        if signed:
            values = (np.abs(values) / 2 + 0.5) * np.where((row + number) % 2 == 1, 1.0, -1.0)
            row = row // 2
        several = np.array([up, -down, up // 2, -(down // 2), 0, 1 if up else 0][: 6 - number % 3])  # all combinations
        values = values * np.exp2(several[row % len(several)])
        if rounds:
            half = np.arange(values.size).reshape(values.shape) % 2 == 0
            values = np.where(half, np.round(values * 2) / 2, values)
        arrays[name] = in_dtype(values, dtype)
    return arrays


def turns(program: Program, names: Iterable[str], drawn: Mapping[str, Any]) -> int:
    """How many data sets show tensors of one row at both powers."""
    return 2 if any(rows(program, n, np.shape(drawn[n])).count < 2 for n in names) else 1


def powers(program: Program, dtype: DType) -> tuple[int, int]:
    """The greatest powers of two that floats of a type are multiplied with and divided by, so that nothing of the
    program overflows, and little underflows."""
    multiplies = any(s.assign.op == "*=" or not all(map(_only_chosen, nodes(s))) for s in program.stages)
    far = FAR if multiplies else ALONE
    up, down = min(far, floor(log2(dtype.greatest)) - 2), min(FAR, max(0, (dtype.bias - 1) // 3))
    for stage in program.stages:
        used = list(nodes(stage))
        kinds = {node.dtype for node in used if isinstance(node, Arith | Cast | Call)}
        narrow = [k for k in (*kinds, program.tensors[stage.assign.tensor].dtype) if k.is_float and k.exponent < 8]
        for kind in narrow:
            terms = max(1, prod(_trips(stage)))
            degree = max(2, sum(isinstance(node, Read) for node in used))
            up = min(up, max(0, floor((log2(kind.greatest) - 2 - log2(terms)) / degree)))
        taken = [node for node in used if isinstance(node, Call) and node.function == "exp"]
        for node in taken:
            of_inputs = any(r.tensor in program.inputs for a in node.args for r in reads(a))
            up = min(up, EXPONENT_IN_F16 if narrow else EXPONENT if of_inputs else EXPONENT_OF_SUM)
    return up, down


def _only_chosen(node: Any) -> bool:
    """Whether floats do not grow here by more than a sum does."""
    if isinstance(node, Arith):
        return not node.dtype.is_float or node.op in ("+", "-", "min", "max")
    if isinstance(node, Cast):
        return node.operand.dtype.is_float is node.dtype.is_float
    return not isinstance(node, Call) or node.function == "abs"


def _reads(stage: Stage) -> Iterator[Read]:
    yield from stage.reads
    if stage.init is not None:
        yield from reads(stage.init)


def _trips(stage: Stage) -> Iterator[int]:
    """How often the loops of a sum run, at most."""
    from autosched.logic import interval

    ranges: dict[str, tuple[int, int]] = {}
    for axis in stage.axes:
        low, high = interval(axis.lower, ranges)[0], interval(axis.upper, ranges)[1]
        ranges[axis.name] = low, max(low, high - 1)
        if axis in stage.reduction:
            yield max(1, high - low)


def _rounds(node: Any) -> bool:
    """Whether a float becomes a whole number here."""
    if isinstance(node, Cast):
        return node.operand.dtype.is_float and node.dtype.is_integer
    return isinstance(node, Call) and node.function in ROUNDING


def _through_bits(program: Program, name: str) -> bool:
    """Whether an integer is part of a float's bits, or of an exponent: at its ends that is infinite."""
    whole = [n for s in program.stages for n in nodes(s) if isinstance(n, Call)]
    special = [n for n in whole if n.function.startswith("bits_") or n.function == "scalb"]
    return any(r.tensor == name for n in special for part in walk(n) for r in reads(part))
