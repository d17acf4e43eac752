"""What bodies of tile loops have packed outside of loops that do not move it, in every call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan, TensorPart, TileLoopsPart
from autosched.tiling.steps import DIRECT

CYCLES = 0.5
"""Of one element: a strided load, and its share of a store (Zen 5: 0.3 to 0.8)."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Packed:
    """The kernel packs `elements` of a tensor, unless a row's `decision` reads the operand directly."""

    tensor: str
    elements: float
    decision: str


def prepared_cycles(part: TileLoopsPart, program: Program, nest: TensorPart, values: Columns) -> Column | float:
    """Cycles for what is packed for a nest in front of loops of this part; `program` is the one that these are of."""
    total: Column | float = 0.0
    for packed in _in_front(part, program, nest):
        total = total + CYCLES * packed.elements * (values[packed.decision] != DIRECT).astype(np.float64)
    return total


def prepares(part: TileLoopsPart, program: Program, nest: TensorPart) -> bool:
    """Whether anything may be packed for the nest in front of these loops."""
    return any(True for _ in _in_front(part, program, nest))


def _in_front(part: TileLoopsPart, program: Program, nest: TensorPart) -> Iterator[_Packed]:
    return (p for p in _outside(part, _packed(part.member, nest)) if not program.tensors[p.tensor].const)


def _packed(plan: Plan, nest: TensorPart) -> Iterator[_Packed]:
    """What a plan packs of its program's `const` tensors for one of its nests."""
    for part in plan.parts:
        if part is nest:
            for operand in nest.nest.intrinsic.inputs:
                tensor = plan.program.tensors[nest.nest.mapping.operands[operand.name].tensor]
                if tensor.const:
                    yield _Packed(tensor.name, float(prod(tensor.extents)), nest.names.pack(operand.name))
        elif isinstance(part, TileLoopsPart):
            for packed in _outside(part, _packed(part.member, nest)):
                if plan.program.tensors[packed.tensor].const:
                    yield packed


def _outside(part: TileLoopsPart, found: Iterator[_Packed]) -> Iterator[_Packed]:
    """The same of the tensors that windows are of: for each iteration of the loops that move the window."""
    for packed in found:
        window = part.windows.get(packed.tensor)
        if window is not None:
            places = prod(t.last + 1 - t.first for t in part.moving(window))
            yield _Packed(window.tensor, packed.elements * places, packed.decision)
