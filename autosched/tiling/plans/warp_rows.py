"""What a body keeps in the registers of warps that share its rows: sums in their fragments, what row stages make of
them, and what later products take from them (`find_warp_rows` looks for it).

    S[i, j] += Q[i, p] * K[j, p]        a warp has some rows: S[i, j] is in the fragments of its accumulators
    M[i] = max(M[i], S[i, j])           a number of each row, which all lanes with elements of that row have
    P[i, j] = f16(exp(S[i, j] - M[i]))  element by element, in the lane that has S[i, j]
    A[i, e] += P[i, j] * V[j, e]        operand `a` comes from registers, sums stay in others over all iterations

Every tensor has one distribution, that of the accumulators: which lane of which warp has an element follows from its
row and column. A product takes one as its operand where every lane is proved, element by element, to have what its own
fragment wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from autosched.ir.nodes import Axis, Stage, Tensor
from autosched.logic import Int, Var, evaluate
from autosched.tensorize.fragment import Fragment
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import (
    Part,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)

WORD_BITS = 32


@dataclass(frozen=True)
class Spread:
    """A tensor over the fragments: which of its dimensions are rows and columns. Without columns each row has one
    number, which all lanes with elements of the row hold."""

    tensor: Tensor
    rows: int
    columns: int | None


@dataclass(frozen=True)
class FragmentStage:
    """A stage that is computed in fragments, and its axes of rows and columns."""

    stage: Stage
    rows: str
    columns: str | None

    @property
    def column_axis(self) -> Axis | None:
        return next((a for a in self.stage.axes if a.name == self.columns), None)

    @property
    def reduces(self) -> bool:
        return any(a.extent > 1 for a in self.stage.reduction)


@dataclass(frozen=True)
class RowProduct:
    """A product with the rows of the body: those of its accumulators, or (no `columns`) of the operands alone that it
    takes from registers. `taken`: their tensors, by operand."""

    part: TensorPart
    rows: NestAxis
    columns: NestAxis | None
    taken: Mapping[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, str]:
        """Which of its stage's axes are rows and columns of what it leaves."""
        if self.columns is None:
            return {}
        return {self.rows.members[0][0]: "rows", self.columns.members[0][0]: "columns"}


@dataclass(frozen=True)
class WarpRows:
    """The body of `loops` in the registers of workers (`scope`: warps or warpgroups): each of `splits` is a number of
    them that may share its `extent` rows. They lie as the accumulators do, in pieces like `fragment`, of whose
    coordinates `along` is the one of rows. `held`: the tensors that are kept so, of which those `carried` outlive the
    body. `stages`, by name, are computed there."""

    loops: TileLoopsPart
    scope: str
    fragment: Fragment
    along: int
    extent: int
    products: tuple[RowProduct, ...]
    stages: Mapping[str, FragmentStage]
    held: Mapping[str, Spread]
    carried: frozenset[str]
    splits: tuple[int, ...] = ()

    @property
    def row_unit(self) -> int:
        return self.fragment.shape[self.along]

    @property
    def column_unit(self) -> int:
        return self.fragment.shape[1 - self.along]

    def tiles(self, warps: int) -> int:
        """A warp's fragments along the rows."""
        return -(-self.extent // self.row_unit) // warps

    def columns(self, spread: Spread) -> int:
        """Elements along the columns; 1 where there are none."""
        return 1 if spread.columns is None else spread.tensor.extents[spread.columns]

    def shape(self, spread: Spread, warps: int) -> tuple[int, ...]:
        """Of the registers that hold a tensor: warps, a warp's tiles along rows (and columns), elements of one."""
        across = () if spread.columns is None else (-(-self.columns(spread) // self.column_unit),)
        return (warps, self.tiles(warps), *across, self.fragment.elements)

    def registers(self, warps: int, without: frozenset[str] = frozenset()) -> int:
        """32-bit registers that all that is held takes of a thread, some tensors aside."""
        return sum(
            -(-prod(self.shape(s, warps)[1:-1]) * self.lane_elements(s) * s.tensor.dtype.bits // WORD_BITS)
            for name, s in self.held.items()
            if name not in without
        )

    def lane_elements(self, spread: Spread) -> int:
        """Elements of one fragment that a lane has of a tensor: without columns one of each of its rows."""
        mine = np.flatnonzero(self.fragment.owners[0] == 0)
        if spread.columns is not None:
            return len(mine)
        return len(np.unique(np.asarray(evaluate(self.coordinates(Var("e"))[0], {"e": mine}))))

    def number(self, row: Int, column: Int) -> Int:
        """The number in its fragment (row-major) of an element at a row and a column of its tile."""
        first, second = (row, column) if self.along == 0 else (column, row)
        return first * self.fragment.shape[1] + second

    def coordinates(self, element: Int) -> tuple[Int, Int]:
        """The row and the column in its tile of an element of a fragment."""
        wide = self.fragment.shape[1]
        found = element // wide, element % wide
        return found[self.along], found[1 - self.along]

    def same_lane(self, distance: int) -> bool:
        """Whether each lane has the elements of its rows that are so many columns (a power of two) apart, in pairs."""
        element = np.arange(self.fragment.elements)
        row, column = (np.asarray(evaluate(c, {"e": element})) for c in self.coordinates(Var("e")))
        there = evaluate(self.number(Var("r"), Var("c")), {"r": row, "c": column ^ distance})
        lane = self.fragment.owners[0]
        return bool((lane[np.asarray(there)] == lane).all())

    def computes(self, part: Part) -> bool:
        """Whether all stages of a part without an instruction are computed in fragments."""
        return not isinstance(part, TensorPart) and all(s.name in self.stages for s in stages_of(part))


def stages_of(part: Part) -> tuple[Stage, ...]:
    """The stages of a part on CUDA cores, in order."""
    match part:
        case ScalarPart():
            return (part.stage,)
        case WarpCooperativePart():
            return part.members
    return ()


def policy_of(part: Part) -> FloatPolicy | None:
    """What row stages of a part may change of a float's bits; None where they are not computed in fragments."""
    match part:
        case ScalarPart():
            return part.by_rows
        case WarpCooperativePart():
            return part.policy
    return None


def defined_first(rows: WarpRows, tensor: str) -> bool:
    """Whether an iteration of the body writes all of a tensor before anything reads of it."""
    for stage in rows.loops.member.program.stages:
        touches = stage.assign.tensor == tensor
        if not touches and all(r.tensor != tensor for r in all_reads(stage)):
            continue
        begins = stage.assign.op == "=" or stage.init is not None
        return touches and begins and not stage.guards and all(r.tensor != tensor for r in stage.reads)
    return False

