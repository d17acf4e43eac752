"""Subscripts from data: which elements of which tensors a call has to look at before code reads memory by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from autosched.errors import UsageError
from autosched.ir.nodes import Stage
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.program import Program
from autosched.ir.value import Cast, Index, Read, Select, Value, children, is_value, reads


@dataclass(frozen=True)
class IndexRange:
    """A tensor whose elements are subscripts, from `low` to `high`; `because` says who says so."""

    tensor: str
    low: float
    high: float
    because: str

    def refuse_outside(self, array: np.ndarray) -> None:
        """UsageError that names an element outside."""
        if not array.size or (array.min() >= self.low and array.max() <= self.high):
            return
        at = np.unravel_index(int(np.argmax((array < self.low) | (array > self.high))), array.shape)
        where = f"{self.tensor}[{', '.join(map(str, at))}]"
        raise UsageError(f"{where} is {array[at]}, and {self.because}", hint="an index must stay inside the tensor")


def index_ranges(program: Program) -> tuple[IndexRange, ...]:
    """What is known of parameters whose elements are subscripts: ranges that the program assumes, and the extents of
    what they index where a statement does so without a condition."""
    found: dict[IndexRange, None] = {}
    for stage in program.stages:
        for tensor, dimension, index, always in _subscripts(stage):
            for read in reads(index):
                low, high = assumed_range(program, read.tensor)
                if read.tensor in program.parameters and (low, high) != (None, None):
                    limits = (-np.inf if low is None else low, np.inf if high is None else high)
                    said = " <= ".join(str(x) for x in (low, read.tensor, high) if x is not None)
                    found[IndexRange(read.tensor, *limits, f"the program assumes {said}")] = None
            plain = index.operand if isinstance(index, Cast) and index.dtype.is_integer else index
            if always and isinstance(plain, Read) and plain.tensor in program.parameters:
                last = program.tensors[tensor].extents[dimension] - 1
                said = f"dimension {dimension} of {tensor} has the indices 0 to {last}"
                found[IndexRange(plain.tensor, 0, last, said)] = None
    return tuple(found)


def refuse_indices(ranges: tuple[IndexRange, ...], arrays: Mapping[str, np.ndarray]) -> None:
    """UsageError for the first element that is outside."""
    for known in ranges:
        if known.tensor in arrays:
            known.refuse_outside(arrays[known.tensor])


def _subscripts(stage: Stage) -> Iterator[tuple[str, int, Value, bool]]:
    """Subscripts from data: the tensor, its dimension, the subscript, and whether it is used in every iteration."""
    always = not stage.guards
    yield from _of(stage.assign.tensor, stage.assign.index, always)
    roots = [stage.assign.value, *([] if stage.init is None else [stage.init])]
    roots += [g for g in stage.guards if is_value(g)] + [i for i in stage.assign.index if is_value(i)]
    waiting = [(root, always and root is stage.assign.value) for root in roots]
    while waiting:
        node, here = waiting.pop()
        if isinstance(node, Read):
            yield from _of(node.tensor, node.index, here)
        waiting += [(child, here and not isinstance(node, Select)) for child in children(node)]


def _of(tensor: str, index: tuple[Index, ...], always: bool) -> Iterator[tuple[str, int, Value, bool]]:
    yield from ((tensor, k, part, always) for k, part in enumerate(index) if is_value(part))
