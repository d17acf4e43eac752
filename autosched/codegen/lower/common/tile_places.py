"""What a register tile consists of, and where its registers, lanes and outputs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.guarded_steps import (
    Parts,
)
from autosched.codegen.lower.common.operands.sources import OperandSource
from autosched.codegen.lower.common.positions import LANE, Position, elements
from autosched.codegen.lower.common.prefetches import NextBlock
from autosched.codegen.lower.common.sums import Sums
from autosched.codegen.lower.common.transposed_stores import StoreTransposer
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import For, Lane, Stmt
from autosched.ir.value import Read
from autosched.logic import Bool, Const, Int, Var, all_of
from autosched.logic.walk import substitute_bool
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import StepNames, StreamedWindow

Places = dict[str, Position]
Rows = Mapping[str, tuple[Int, Int]]
"""The first row of a tile and the one after the last, by axis."""


@dataclass(frozen=True, eq=False)
class TilePlaces:
    """One register tile of a part; `tile_registers.declared` makes one, whose registers all variants share.

    `tiled`: the axes of the tile. `owner`: the worker, where accumulators outlive one loop over workers and each has
    its own. `sums`: where accumulators wait between visits, if not in the output. `waiting`: where they wait for a loop
    over the tile's rows that computes the fused stages behind, if not in registers. `hold_all`: there are registers for
    all units of every operand. `left`: the guards that leave steps out here. `alike`: for axes whose units keep the
    same rows, one of them. `computed_from`: the unit with which calls begin, of axes where that is not 0."""

    part: TensorPart
    sources: Mapping[str, OperandSource]
    ctx: Context
    tiled: tuple[NestAxis, ...]
    acc: str
    registers: Mapping[str, str]
    owner: tuple[Int, ...] = ()
    sums: Sums | None = None
    waiting: Sums | None = None
    hold_all: bool = False
    window: StreamedWindow | None = None
    kept_sums: str = ""
    left: Parts = ()
    alike: Places = field(default_factory=dict)
    computed_from: Mapping[str, int] = field(default_factory=dict)
    unroll: int = 1
    skips: NestAxis | None = None
    next: NextBlock | None = None
    transposer: StoreTransposer | None = None

    @property
    def nest(self) -> Nest:
        return self.part.nest

    @property
    def names(self) -> StepNames:
        return self.part.names

    @property
    def intrinsic(self) -> Intrinsic:
        return self.nest.intrinsic

    @property
    def accumulator(self) -> Operand:
        return self.intrinsic.accumulator

    @property
    def cut(self) -> NestAxis | None:
        """The reduction axis that blocks cut."""
        return self.nest.blocked_reduction if self.part.scheme == "cpu" else self.nest.depth

    def own(self, operand: str) -> tuple[NestAxis, ...]:
        return tuple(a for a in self.tiled if a in self.nest.operand_axes(operand))

    def held(self, operand: str) -> tuple[NestAxis, ...]:
        """Axes over which all the operand's registers are kept: those it has, unless they are the outermost ones."""
        return held_axes(self.nest, operand, self.tiled, self.hold_all)

    def register_index(self, axes: tuple[NestAxis, ...]) -> tuple[Int, ...]:
        return tuple(Var(f"{identifier(a.name)}r") for a in axes)

    def acc_index(self) -> tuple[Int, ...]:
        return (*self.owner, *self.register_index(self.tiled))

    def over(
        self,
        axes: tuple[NestAxis, ...],
        counts: dict[str, int],
        body: tuple[Stmt, ...],
        kept: Rows = MappingProxyType({}),
    ) -> tuple[Stmt, ...]:
        """Unrolled loops over units of the register tile; over those in `kept` alone where it names an axis."""
        for axis in reversed(axes):
            var, n = f"{identifier(axis.name)}r", counts[axis.name]
            lower, upper = kept.get(axis.name, (Const(0), Const(n)))
            body = bind(body, {var: Const(0)}) if n == 1 else (For(var, lower, upper, body, "unrolled"),)
        return body

    def output(self, at: Places, lanes: Mapping[str, Int] | None = None) -> tuple[dict[str, Int], Bool]:
        """Program axes of an accumulator's lane, and which lanes the stage writes."""
        positions = elements(self.nest, at, self.lane_coordinates() if lanes is None else lanes)
        valid = all_of(*(positions[a.name] < a.extent for a in self.nest.spatial if at[a.name].partial))
        axes = self.nest.at(positions)
        return axes, all_of(valid, substitute_bool(self.nest.written, axes))

    def lane_coordinates(self) -> dict[str, Int]:
        """The intrinsic's axes at an accumulator's lane."""
        return self.nest.lane_coordinates(self.accumulator.name, self.element(self.accumulator.elements))

    @staticmethod
    def element(count: int) -> Int:
        return Var(LANE) if count > 1 else Const(0)

    def lane(self, count: int) -> Lane | None:
        return Lane(LANE, count) if count > 1 else None

    def acc_read(self) -> Read:
        index = (*self.acc_index(), self.element(self.accumulator.elements))
        return Read(self.acc, index, self.accumulator.dtype)


def held_axes(nest: Nest, operand: str, tiled: tuple[NestAxis, ...], hold_all: bool = False) -> tuple[NestAxis, ...]:
    """Axes of a tile over which all of an operand's registers are kept."""
    own = tuple(a for a in tiled if a in nest.operand_axes(operand))
    return own if hold_all or own != tiled[: len(own)] else ()
