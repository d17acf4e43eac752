"""One element of a result as a dot product: the same vectors through an intrinsic, or the program's own sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DType
from autosched.ir.oracle.numerics import load
from autosched.ir.value import Read
from autosched.logic import Int, evaluate
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.numerics.model import Model
from autosched.tensorize.numerics.sums import Adder
from autosched.tensorize.reduction.update import Update, operand_reads, update_of_intrinsic

Vectors = npt.NDArray[Any]


class Dot(Protocol):
    """`run(a, b, c)`: c + Σ a·b of vectors of shape (cases, k), k a multiple of `step`; c of shape (cases,). `factors`
    are the types of a and b, `accumulator` that of c and of the result. Values are float64 in and out."""

    name: str
    step: int
    factors: tuple[DType, DType]
    accumulator: DType

    def run(self, a: Vectors, b: Vectors, c: Vectors) -> Vectors: ...


@dataclass
class ProgramDot:
    """The sum as the program has it: one product after the other, each operation rounded in the accumulator's type."""

    factors: tuple[DType, DType]
    accumulator: DType
    fused: bool = False
    name: str = "program"
    step: int = 1

    def run(self, a: Vectors, b: Vectors, c: Vectors) -> Vectors:
        adder = Adder(Numerics("sequential", fused=self.fused), self.accumulator, self.factors)
        kind = load(np.zeros(1, self.accumulator.numpy), self.accumulator).dtype
        with np.errstate(all="ignore"):
            found = adder.issue(c.astype(kind), a.T.astype(kind), b.T.astype(kind))
        return np.asarray(found, np.float64)


@dataclass
class IntrinsicDot:
    """The sum as issues of an intrinsic do it, told by one element of its accumulator."""

    intrinsic: Intrinsic
    name: str = ""
    step: int = field(init=False)

    def __post_init__(self) -> None:
        intrinsic = self.intrinsic
        self.name = self.name or intrinsic.name
        update = update_of_intrinsic(intrinsic)
        reads = operand_reads(update.term)
        self._model = Model(intrinsic, first_alone=True)
        self._places = tuple(_places(intrinsic, update, r) for r in reads)
        self._operands = tuple(intrinsic.operands[r.tensor] for r in reads)
        self.factors = self._operands[0].dtype, self._operands[1].dtype
        self.accumulator = intrinsic.accumulator.dtype
        self.step = len(self._places[0])

    def run(self, a: Vectors, b: Vectors, c: Vectors) -> Vectors:
        cases, target = len(a), self.intrinsic.accumulator
        held = np.zeros((cases, target.elements), target.dtype.numpy)
        held[:, 0] = c.astype(target.dtype.numpy)
        for first in range(0, a.shape[1], self.step):
            arrays = {target.name: held.reshape(cases, *target.shape)}
            for operand, places, values in zip(self._operands, self._places, (a, b), strict=True):
                whole = np.zeros((cases, operand.elements), operand.dtype.numpy)
                whole[:, places] = values[:, first : first + self.step].astype(operand.dtype.numpy)
                arrays[operand.name] = whole.reshape(cases, *operand.shape)
            held = self._model(arrays).reshape(cases, -1)
        return held[:, 0].astype(np.float64)


def is_dot(intrinsic: Intrinsic) -> bool:
    """Whether the intrinsic sums products of two float elements."""
    if not intrinsic.accumulator.dtype.is_float or intrinsic.kind != "compute":
        return False
    reads = operand_reads(update_of_intrinsic(intrinsic).term)
    return len(reads) == 2 and all(r.dtype.is_float and not r.dtype.scale for r in reads)


def _places(intrinsic: Intrinsic, update: Update, read: Read) -> list[int]:
    """The operand's elements that the accumulator's first element meets, along its reduction."""
    axes = {a.name: 0 for a in update.axes}
    shape = intrinsic.operands[read.tensor].shape
    extents = [a.extent for a in update.axes_reduced]
    found = []
    for point in np.ndindex(*extents):
        env = axes | {a.name: int(n) for a, n in zip(update.axes_reduced, point, strict=True)}
        place = 0
        for part, extent in zip(read.index, shape, strict=True):
            assert isinstance(part, Int)
            place = place * extent + int(evaluate(part, env))
        found.append(place)
    return found
