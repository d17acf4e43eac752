"""Sources without guards, and the condition under which a register tile may read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.operands.sources import MemorySource, OperandSource
from autosched.codegen.lower.common.positions import Position
from autosched.logic import TRUE, Bool, Const, Int, all_of
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps import DIRECT, conditions, inside


def without_guards(
    nest: Nest, sources: Mapping[str, OperandSource], at: Mapping[str, Position], counts: Mapping[str, int]
) -> tuple[dict[str, OperandSource], Bool]:
    """The sources as they are where every guard of a direct one holds for all of a tile at `at` (its units along each
    axis in `counts`) and the whole reduction; and that condition (TRUE where nothing is guarded)."""
    free: dict[str, OperandSource] = dict(sources)
    needed: list[Bool] = []
    ends = {a.name: _ends(a, at[a.name].unit, counts.get(a.name, 1)) for a in nest.axes}
    for operand, source in sources.items():
        if isinstance(source, MemorySource) and source.kind == DIRECT and nest.guarded[operand] != TRUE:
            forms = conditions(nest, operand)
            assert forms is not None
            needed.append(inside(forms, ends))
            free[operand] = replace(source, inside=True)
    return free, all_of(*needed)


def _ends(axis: NestAxis, unit: Int, count: int) -> Callable[[bool], Int]:
    """The first and last position of a tile along an axis: all of a reduction, `count` register tiles of another."""

    def end(last: bool) -> Int:
        if axis.reduction:
            return Const(axis.extent - 1 if last else 0)
        there = substitute_int(unit, {f"{identifier(axis.name)}r": Const(count - 1 if last else 0)})
        return there * axis.unit + (axis.unit - 1 if last else 0)

    return end
