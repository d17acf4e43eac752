"""Edges: whether register tiles that lie inside a tensor, all of their window with them, run code without guards.

A guard on addresses (a border of zeros) holds for nearly all tiles of an image. Asked once a tile, it costs nothing;
asked at each load it costs a branch there, and a copy with a border costs a pass over the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.logic import TRUE, Affine, Bool, Const, Int, Var, all_of, any_of
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Decision, Handle, Step
from autosched.tiling.steps.common.layout import vectorises
from autosched.tiling.steps.cpu.pack import DIRECT

CHECKED, APART = 0, 1
EDGES = Handle("edges", CHECKED)


def edges(nest: Nest, names: StepNames) -> Step:
    """`edges`: each guarded load is checked where it is, or tiles that need no check are kept apart from those at the
    edge. No decision where nothing is guarded, or where a guard is no comparison of plain sums."""
    if not apart(nest):
        return Step("edges")
    guarded = [o.name for o in nest.intrinsic.inputs if nest.guarded[o.name] != TRUE]
    copied = all_of(*(Var(names.pack(o)).ne(DIRECT) for o in guarded))
    at_edges = any_of(*(all_of(Var(names.pack(o)).eq(DIRECT), ~_some_inside(nest, o, names)) for o in guarded))
    column = names(EDGES.name)
    decision = Decision(column, (CHECKED, APART), ("checked", "apart"))
    return Step("edges", (decision,), inert={column: any_of(copied, at_edges)})


def _some_inside(nest: Nest, operand: str, names: StepNames) -> Bool:
    """Whether register tiles may lie inside: along each axis by itself, one begins behind the first position that its
    guards allow and ends before the last, a whole one or what is left at the axis's end."""
    extents = {a.name: a.extent for a in nest.axes}
    parts: list[Bool] = []
    for axis in nest.spatial:
        first, last = 0, axis.extent - 1
        for form in conditions(nest, operand) or ():
            others = {a: c for a, c in form.coefficients.items() if a != axis.name}
            c = form.coefficient(axis.name)
            if c and not any(a.name in others for a in nest.spatial):
                rest = form.constant + sum(max(0, o * (extents[a] - 1)) for a, o in others.items())
                if c > 0:
                    last = min(last, (-rest - 1) // c)
                else:
                    first = max(first, rest // -c + 1)
        size = Var(names.register(axis)) * axis.unit if axis in tiled_axes(nest) else Const(axis.unit)
        begin, rest_of = (size + (first - 1)) // size * size, axis.extent // size * size
        whole = all_of(begin + size <= last + 1, begin + size <= axis.extent)
        cut = all_of(rest_of < axis.extent, rest_of >= first, Const(axis.extent - 1) <= last)
        parts.append(any_of(whole, cut))
    return all_of(*parts)


def apart(nest: Nest) -> bool:
    """Whether the decision is there: some guarded operand may be read where it lies, and all guards can be told."""
    if nest.intrinsic.matrices is not None:
        return False  # what is guarded comes from panels
    guarded = [o.name for o in nest.intrinsic.inputs if nest.guarded[o.name] != TRUE]
    return any(vectorises(nest, o) for o in guarded) and all(conditions(nest, o) is not None for o in guarded)


def conditions(nest: Nest, operand: str) -> tuple[Affine, ...] | None:
    """An operand's guard as sums over positions (in elements) along nest axes, all of which must be below 0; None where
    it has parts of another kind, such as sizes that are not known."""
    forms, axes = nest.guarded_sums[operand], nest.by_name.keys()
    known = tuple(form for form in forms if form is not None and form.coefficients.keys() <= axes)
    return known if len(known) == len(forms) else None


def inside(forms: tuple[Affine, ...], extremes: Mapping[str, Callable[[bool], Int]]) -> Bool:
    """Whether all sums are below 0 at every position of a tile. `extremes` gives, for an axis, its last position of the
    tile (for True) or its first."""
    parts = []
    for form in forms:
        total: Int = Const(form.constant)
        for axis, c in form.coefficients.items():
            total = total + extremes[axis](c > 0) * c
        parts.append(total < 0)
    return all_of(*parts)
