"""The part of a tensor that a copy in another shape holds at a time, and where it is filled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.positions import Position
from autosched.logic import Int, Var
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import EACH_PART, StepNames, part_axes, tiled_axes
from autosched.tiling.steps.cpu.copy_granularity import copy_of


@dataclass(frozen=True)
class Along:
    """Positions that a copy holds along one dimension: a register tile's of a tiled axis, one of another."""

    axis: str
    size: int
    tiled: bool


@dataclass(frozen=True)
class CopiedPart:
    """`along`: by dimension of the tensor, what of it the copy holds; all of any other. `owner`: a thread and how many
    there are, each with a copy of its own."""

    along: Mapping[int, Along] = field(default_factory=dict)
    owner: tuple[Int, int] | None = None

    @property
    def owners(self) -> tuple[Int, ...]:
        """The copy's leading subscripts."""
        return () if self.owner is None else (self.owner[0],)

    @property
    def place(self) -> str:
        """The axis of the innermost loop around the copy: it is filled where an iteration of that loop begins."""
        return list(self.along.values())[-1].axis

    def begins(self) -> dict[int, Int]:
        """By dimension, where the copy begins within the tensor. Loops have the names that `tensor_nest` gives them."""
        names = {d: identifier(a.axis) for d, a in self.along.items()}
        return {d: Var(f"{names[d]}t") * a.size if a.tiled else Var(names[d]) for d, a in self.along.items()}

    def starts(self, at: Mapping[str, Position]) -> dict[int, Int]:
        """The same at a place of the code."""
        found: dict[int, Int] = {}
        for d, a in self.along.items():
            tile = at[a.axis].tile
            found[d] = at[a.axis].unit if tile is None else tile * a.size
        return found


ALL = CopiedPart()


def part_of(nest: Nest, operand: str, names: StepNames, values: Mapping[str, int], threads: int) -> CopiedPart:
    """What a copy of the operand's tensor holds at a time under the schedule."""
    if copy_of(operand).of(names, values) != EACH_PART:
        return ALL
    tiled = tiled_axes(nest)
    sizes = {a.name: values[names.register(a)] if a in tiled else 1 for a in nest.spatial}
    along = {d: Along(a.name, sizes[a.name], a in tiled) for d, a in part_axes(nest, operand).items()}
    return CopiedPart(along, (Var("thread"), threads) if threads > 1 else None)
