"""`Nest`: one tensorized stage: its geometry, and where its guards are held.

Read `nest_geometry` first: axes, and where every element sits.
"""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

from autosched.ir.nodes import Axis
from autosched.ir.value import Condition, is_value
from autosched.logic import Affine, Bool, Const, Int, Var, all_of, below_zero, conjuncts, interval
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tensorize.fewer_rows import choose_tile_rows
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.lengths import at_length
from autosched.tensorize.match_types import Mapping
from autosched.tiling.plans.group_sums import GroupSums
from autosched.tiling.plans.guards import GuardPlacement, place_guards
from autosched.tiling.plans.nest_geometry import NestAxis, NestGeometry
from autosched.tiling.plans.on_the_way import OnTheWay
from autosched.tiling.plans.selected_parts import as_issued
from autosched.tiling.plans.windowed_operands import window_lanes


@dataclass(frozen=True)
class Nest(NestGeometry):
    """A stage on an intrinsic, with its guards placed. `computed`: operands that are no elements of a tensor in memory,
    but computed where they are taken. `groups`: the stage's sums are those of groups, which are added up with factors
    as each is summed; None where they are the intrinsic's alone."""

    computed: MappingOf[str, OnTheWay] = field(default_factory=dict)
    groups: GroupSums | None = None

    @cached_property
    def cache(self) -> dict[Hashable, Any]:
        """What `cached_on_nest.of_nest` keeps."""
        return {}

    @property
    def never_stored(self) -> tuple[str, ...]:
        """The stages that it computes in passing: those of operands computed on the way, and of sums of groups."""
        sums = () if self.groups is None else (self.groups.stage,)
        return (*(c.stage for c in self.computed.values()), *sums)

    @cached_property
    def shortened(self) -> tuple[NestAxis, Intrinsic] | None:
        """The axis that the instruction's length is compared with, and the instruction with the lanes that the last
        tile along it has left; None where it has no length, or all tiles are whole."""
        if self.intrinsic.length is None:
            return None
        along = next((a for a in self.axes if a.intrinsic_axis == self.intrinsic.length[1]), None)
        left = along.extent % along.unit if along is not None else 0
        return (along, at_length(self.intrinsic, left)) if along is not None and left else None

    @property
    def issue_time(self) -> float:
        """Of an issue on all lanes: what one takes on average, where the last along an axis have fewer lanes."""
        if self.shortened is None:
            return 1.0
        axis, short = self.shortened
        return (axis.units - 1 + short.share / self.intrinsic.share) / axis.units

    @cached_property
    def placed_guards(self) -> GuardPlacement:
        """Raises LookupError where this intrinsic cannot hold the guards."""
        return place_guards(self)

    @property
    def guarded(self) -> dict[str, Bool]:
        """Input operand to the condition under which its element is real; elsewhere its fill is staged in its place."""
        return self.placed_guards.staged

    @property
    def written(self) -> Bool:
        """Over spatial axes: which elements of the output the stage writes at all."""
        return self.placed_guards.written

    @property
    def accumulate_mask(self) -> Bool:
        """Over spatial axes: where the accumulated value counts; elsewhere the element keeps what it started with."""
        return self.placed_guards.accumulate_mask

    @property
    def stepped(self) -> Bool:
        """Where a step is added to an element at all: the guards whose steps are left out."""
        return self.placed_guards.stepped

    @cached_property
    def stepped_sums(self) -> tuple[tuple[Bool, Affine | None], ...]:
        """The parts of `stepped`, each with its sum as `_sums` has it."""
        return tuple((part, self._sums(part)[0]) for part in conjuncts(self.stepped))

    @cached_property
    def accumulate_sums(self) -> tuple[Affine | None, ...]:
        """The parts of `accumulate_mask`, as `_sums` has them."""
        return self._sums(self.accumulate_mask)

    @cached_property
    def guard_sums(self) -> tuple[Affine | None, ...]:
        """The parts of the stage's guards and bounds, as `_sums` has them."""
        return self._sums(all_of(self.guard, self.bounds))

    @cached_property
    def guarded_sums(self) -> dict[str, tuple[Affine | None, ...]]:
        """The parts of each condition of `guarded`, as `_sums` has them."""
        return {operand: self._sums(condition) for operand, condition in self.guarded.items()}

    def _sums(self, condition: Bool) -> tuple[Affine | None, ...]:
        """Each part of a condition as a sum over positions (in elements) along nest axes that must be below 0; None for
        one of another kind."""
        places = self.at({a.name: Var(a.name) for a in self.axes})
        return tuple(below_zero(part) for part in conjuncts(substitute_bool(condition, places)))

    def lane_coordinates(self, operand: str, element: Int) -> dict[str, Int]:
        """For each intrinsic axis the operand has, its coordinate as an expression of the register's element number."""
        spec = self.intrinsic.operands[operand]
        (variable, _), *_ = spec.order.domain or ((("e", 1)),)
        coordinates = [substitute_int(c, {variable: element}) for c in spec.order.coordinates]
        if operand in self.intrinsic.windows:
            return window_lanes(self, operand, tuple(coordinates))
        names = self.intrinsic.operand_axes[operand]
        return {n: c for n, c in zip(names, coordinates, strict=True) if n is not None}


def make_nest(mapping: Mapping) -> Nest:
    """The nest of a mapping. Raises ValueError for what a nest cannot hold: data-dependent guards or subscripts, and
    loops that never run."""
    stage = mapping.stage
    box, bounds = box_of(stage.axes)
    mapping = as_issued(choose_tile_rows(mapping, box), box)
    intrinsic = mapping.intrinsic
    guard = all_of(*_formulas(stage.guards))
    for read in mapping.operands.values():
        if any(is_value(i) for i in read.index):
            raise ValueError(f"{read.tensor} is indexed by data")
    spatial = {a.name for a in stage.spatial}
    on = {name: axis for axis, names in mapping.axes.items() for name in names}
    axes: list[NestAxis] = []
    for axis in stage.axes:
        if axis.name not in on:
            member = (axis.name, *box[axis.name])
            axes.append(NestAxis(axis.name, member[2], 1, axis.name not in spatial, (member,)))
    intrinsic_spatial = {a.name for a in intrinsic.spatial}
    for ia in intrinsic.axes:
        names = mapping.axes.get(ia.name, ())
        members = tuple((n, *box[n]) for n in names)
        label = ".".join(names) or f"{ia.name}'"
        extent = prod(m[2] for m in members)
        axes.append(NestAxis(label, extent, ia.extent, ia.name not in intrinsic_spatial, members, ia.name))
    return Nest(stage, intrinsic, mapping, tuple(axes), guard, bounds)


def _formulas(guards: tuple[Condition, ...]) -> list[Bool]:
    formulas = []
    for guard in guards:
        if not isinstance(guard, Bool):
            raise ValueError("a guard depends on data")
        formulas.append(guard)
    return formulas


def box_of(
    axes: tuple[Axis, ...], sizes: MappingOf[str, tuple[int, int]] = MappingProxyType({})
) -> tuple[dict[str, tuple[int, int]], Bool]:
    """(lower, extent) of a box around each axis's range, and the bounds that the box does not imply. `sizes` gives
    the ranges of symbolic sizes and outer axes that the bounds name. Raises ValueError for a loop that never runs."""
    ranges = dict(sizes)
    box: dict[str, tuple[int, int]] = {}
    exact: list[Bool] = []
    for axis in axes:
        low, high = interval(axis.lower, ranges)[0], interval(axis.upper, ranges)[1] - 1
        if high < low:
            raise ValueError(f"the loop over {axis.name} never runs")
        ranges[axis.name] = low, high
        box[axis.name] = low, high - low + 1
        if not isinstance(axis.lower, Const):
            exact.append(axis.lower <= Var(axis.name))
        if not isinstance(axis.upper, Const):
            exact.append(Var(axis.name) < axis.upper)
    return box, all_of(*exact)
