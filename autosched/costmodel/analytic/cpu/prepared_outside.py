"""What bodies of tile loops have packed outside of loops that do not move it, in every call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.ir.program import Program
from autosched.logic import free_vars
from autosched.tiling.analysis.windows import TensorWindow
from autosched.tiling.plans.plan import Plan, TensorPart, TileLoopsPart
from autosched.tiling.steps import DIRECT

CYCLES = 0.5
"""Of one element: a strided load, and its share of a store (Zen 5: 0.3 to 0.8)."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Packed:
    """So many elements of a tensor, in the rows in which an operand is not read as it lies."""

    tensor: str
    elements: float
    rows: Column


def prepared_cycles(part: TileLoopsPart, program: Program, values: Columns) -> Column | float:
    """Cycles for what is packed in front of loops of this part; `program` is the one that these are of."""
    total: Column | float = 0.0
    for packed in _outside(part, _packed(part.member, values)):
        if not program.tensors[packed.tensor].const:
            total = total + CYCLES * packed.elements * packed.rows
    return total


def _packed(plan: Plan, values: Columns) -> Iterator[_Packed]:
    """What a plan packs of its program's `const` tensors."""
    for part in plan.parts:
        if isinstance(part, TensorPart):
            for operand in part.nest.intrinsic.inputs:
                tensor = plan.program.tensors[part.nest.mapping.operands[operand.name].tensor]
                if tensor.const:
                    rows = (values[part.names.pack(operand.name)] != DIRECT).astype(np.float64)
                    yield _Packed(tensor.name, float(prod(tensor.extents)), rows)
        elif isinstance(part, TileLoopsPart):
            for packed in _outside(part, _packed(part.member, values)):
                if plan.program.tensors[packed.tensor].const:
                    yield packed


def _outside(part: TileLoopsPart, found: Iterator[_Packed]) -> Iterator[_Packed]:
    """The same of the tensors that windows are of: for each iteration of the loops that move the window."""
    for packed in found:
        window = part.windows.get(packed.tensor)
        if window is not None:
            yield _Packed(window.tensor, packed.elements * _places(part, window), packed.rows)


def _places(part: TileLoopsPart, window: TensorWindow) -> int:
    used = {n for i in window.start for n in free_vars(i)}
    return prod(t.last + 1 - t.first for t in part.loops if t.axis.name in used)
