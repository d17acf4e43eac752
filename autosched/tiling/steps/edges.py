"""Edges: whether register tiles that lie inside a tensor, all of their window with them, run code without guards.

A guard on addresses (a border of zeros) holds for nearly all tiles of an image. Asked once a tile, it costs nothing;
asked at each load it costs a branch there, and a copy with a border costs a pass over the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.logic import TRUE, Affine, Bool, Const, Int, Var, all_of
from autosched.tiling.nest import Nest
from autosched.tiling.step import Decision, Step
from autosched.tiling.steps.layout import vectorises
from autosched.tiling.steps.names import StepNames
from autosched.tiling.steps.pack import DIRECT

CHECKED, APART = 0, 1


def edges(nest: Nest, names: StepNames) -> Step:
    """`edges`: each guarded load is checked where it is, or tiles that need no check are kept apart from those at the
    edge. No decision where nothing is guarded, or where a guard is no comparison of plain sums."""
    if not apart(nest):
        return Step("edges")
    guarded = [o.name for o in nest.intrinsic.inputs if nest.guarded[o.name] != TRUE]
    copied = all_of(*(Var(names.pack(o)).ne(DIRECT) for o in guarded))
    column = names("edges")
    decision = Decision(column, (CHECKED, APART), ("checked", "apart"))
    return Step("edges", (decision,), inert={column: copied})


def apart(nest: Nest) -> bool:
    """Whether the decision is there: some guarded operand may be read where it lies, and all guards can be told."""
    guarded = [o.name for o in nest.intrinsic.inputs if nest.guarded[o.name] != TRUE]
    return any(vectorises(nest, o) for o in guarded) and all(conditions(nest, o) is not None for o in guarded)


def conditions(nest: Nest, operand: str) -> tuple[Affine, ...] | None:
    """An operand's guard as sums over positions (in elements) along nest axes, all of which must be below 0; None where
    it has parts of another kind."""
    forms = nest.guarded_sums[operand]
    known = tuple(form for form in forms if form is not None)
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
