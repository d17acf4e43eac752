"""How decisions of a nest are called, and which of its axes they concern. Shared by steps, clock and lowering."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.logic import Var
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis


@dataclass(frozen=True, slots=True)
class StepNames:
    """Column names of one nest; `prefix` (`C.`) keeps the nests of a many-stage program apart."""

    prefix: str = ""

    def __call__(self, name: str) -> str:
        return self.prefix + name

    def var(self, name: str) -> Var:
        return Var(self.prefix + name)

    def register(self, axis: NestAxis) -> str:
        return f"{self.prefix}reg_{axis.name}"

    def block(self, axis: NestAxis) -> str:
        return f"{self.prefix}block_{axis.name}"

    def tiles(self, axis: NestAxis) -> str:
        return f"{self.prefix}tiles_{axis.name}"

    def pack(self, operand: str) -> str:
        return f"{self.prefix}pack_{operand}"


def tiled_axes(nest: Nest) -> tuple[NestAxis, ...]:
    """Axes of the register tile in the order in which they are unrolled: up to two rows, then the lanes."""
    rows = tuple(a for a in nest.rows if a.extent > 1)[-2:]
    return rows + nest.lanes


def blocked_axes(nest: Nest) -> tuple[NestAxis | None, NestAxis | None, NestAxis | None]:
    """The axes with a cache block: the first lanes axis, the innermost row, the reduction axis that is cut (None where
    there is none). A register that holds a matrix has rows of its own."""
    tiled = tiled_axes(nest)
    if nest.intrinsic.matrices is not None and len(nest.lanes) > 1:
        return nest.lanes[-1], nest.lanes[-2], nest.blocked_reduction
    rows = [a for a in tiled if not a.intrinsic_axis]
    if not nest.lanes and len(rows) > 1:  # a scalar instruction: two rows play both parts
        return rows[-1], rows[-2], nest.blocked_reduction
    return (nest.lanes[0] if nest.lanes else None), (rows[-1] if rows else None), nest.blocked_reduction
