"""Where the code being emitted stands on the axes of a nest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.logic import Const, Int
from autosched.tiling.plans.nest import Nest

LANE = "e"


@dataclass(frozen=True)
class Position:
    """Where the code being emitted stands on one nest axis: register tile `tile` (or None), element of the register
    tile or unit `unit`, both expressions; `partial` when the intrinsic tile there may reach past the extent; `inside`
    when no border reaches the register tile, so that a row that skips borders has nothing to skip; `group`: the first
    unit of the group that all units of this visit are in, where they are taken in groups; `step`: the first unit of a
    trip of the loop, and how far behind that this one is; `trip`: how many units a trip has, which divides the first's
    number."""

    tile: Int | None
    unit: Int
    partial: bool = False
    inside: bool = False
    group: Int | None = None
    step: tuple[Int, Int] | None = None
    trip: int = 1


def elements(nest: Nest, at: Mapping[str, Position], lanes: Mapping[str, Int]) -> dict[str, Int]:
    """The element position on every nest axis, for a register element with these intrinsic coordinates."""
    found: dict[str, Int] = {}
    for axis in nest.axes:
        inside = lanes.get(axis.intrinsic_axis or "", Const(0))
        found[axis.name] = at[axis.name].unit * axis.unit + inside
    return found | {n: lanes[n] for n in nest.intrinsic.selected if n in lanes}
