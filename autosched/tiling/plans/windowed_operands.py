"""Windowed operands: an instruction indexes them by sums of its axes (`a[i + k]`) or by groups of one (`s[k // 4]`), so
that several points of a tile meet one element.

    c[i] += a[i + k] * b[k]         i < 4, k < 3: a has 6 elements, and a[2] is met at (2, 0), (1, 1) and (0, 2)
    c += a[k] * s[k // 4]           s[1] is met at 4, 5, 6 and 7

Matching has proved that all of these mean one element of the program, so the element is read as one of them has it: the
one with the least positions along axes whose end may cut a tile. What meets the element inside is inside there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.logic import (
    Affine,
    Binary,
    Bool,
    Const,
    Int,
    Var,
    affine,
    ceil_div,
    evaluate,
    free_vars,
    maximum,
    minimum,
    to_z3,
)
from autosched.logic.solver import proving, z3
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.nest_geometry import NestAxis, NestGeometry, moving

_Z3_TIMEOUT_MS = 2000
MOST_POINTS = 1 << 22
"""Points of a tile that are looked at, to see that elements are chosen as this page says."""


def window_lanes(nest: NestGeometry, operand: str, coordinates: tuple[Int, ...]) -> dict[str, Int]:
    """A point of the tile, as a coordinate along each intrinsic axis that the operand has, which meets the element at
    `coordinates` of a windowed operand. Coordinates that no point meets get a point of the tile all the same.
    LookupError where no formula for it is known."""
    index = nest.intrinsic.windows[operand]
    on = {a.intrinsic_axis: a for a in nest.axes if a.intrinsic_axis}
    found: dict[str, Int] = {}
    names = nest.intrinsic.operand_axes[operand]
    for name, coordinate in zip(names, coordinates, strict=True):  # plain axes first: they may occur in sums too
        if name is not None and name in on:
            found.setdefault(name, minimum(coordinate, on[name].unit - 1))
    for part, coordinate, name in zip(index, coordinates, names, strict=True):
        if name is not None or not free_vars(part):
            continue
        if isinstance(part, Var) and part.name in nest.intrinsic.selected:
            found[part.name] = coordinate
            continue
        if (group := group_of(part)) is not None:
            axis, size = group
            if axis in on:  # the first of a group: those inside come before those past the end
                found.setdefault(axis, minimum(coordinate * size, (reach(on[axis]) - 1) // size * size))
            continue
        form = affine(part)
        if form is None:
            raise LookupError(f"{operand} is indexed by {part}, which is no sum of axes")
        found |= _solved(form, coordinate, found, {n: on[n] for n in form.coefficients if n in on})
    return found


def group_of(part: Int) -> tuple[str, int] | None:
    """The axis and the size of `k // 4`; None where a subscript is of another kind."""
    match part:
        case Binary("//", Var(axis), Const(size)) if size > 0:
            return axis, size
    return None


def reach(axis: NestAxis) -> int:
    """Positions of a tile along an axis: fewer than its unit where all of the axis is."""
    return min(axis.unit, axis.extent)


def _solved(form: Affine, coordinate: Int, known: Mapping[str, Int], axes: Mapping[str, NestAxis]) -> dict[str, Int]:
    """Axes of a sum that are not `known`, such that the sum is `coordinate`: large steps are taken first, as few of
    them as the other axes allow along a spatial axis, as many as there are along a reduction."""
    rest = coordinate - form.constant
    for name, position in known.items():
        rest = rest - position * form.coefficient(name)
    steps = {n: form.coefficient(n) for n in axes if n not in known}
    found: dict[str, Int] = {}
    left = sorted(steps, key=lambda n: (-abs(steps[n]), axes[n].reduction))
    while left:
        name, *left = left
        step, last = steps[name], reach(axes[name]) - 1
        low = sum(min(0, steps[n] * (reach(axes[n]) - 1)) for n in left)
        high = sum(max(0, steps[n] * (reach(axes[n]) - 1)) for n in left)
        least, most = (rest - high, rest - low) if step > 0 else (low - rest, high - rest)
        fewest, all_there = ceil_div(least, abs(step)), most // abs(step)
        chosen = all_there if axes[name].reduction or not left else fewest
        found[name] = maximum(0, minimum(last, chosen))
        rest = rest - found[name] * step
    return found


def not_chosen(nest: NestGeometry, operand: str) -> str | None:
    """Why no formula says where elements of a windowed operand come from; None where one does, or it is not windowed.

    Every point of a tile is looked at: the one that is chosen for its element has the same coordinates, and lies no
    further along an axis whose end cuts a tile."""
    index = nest.intrinsic.windows.get(operand)
    if index is None:
        return None
    shape = nest.intrinsic.operands[operand].shape
    on = {a.intrinsic_axis: a for a in nest.axes if a.intrinsic_axis in moving(index)}
    try:
        lanes = window_lanes(nest, operand, tuple(Var(f"@{d}") for d in range(len(shape))))
    except LookupError as error:
        return str(error)
    sides = [reach(a) for a in on.values()]
    if prod(sides) > MOST_POINTS or prod(shape) > MOST_POINTS:
        return f"{operand} has {max(prod(sides), prod(shape)):,} elements in a tile; at most {MOST_POINTS:,}"
    points = dict(zip((str(n) for n in on), np.indices(sides).reshape(len(sides), -1), strict=True))
    met = _values(index, points)
    chosen = {n: _values((lane,), _at(met))[0] for n, lane in lanes.items()}
    again = _values(index, chosen)
    said = f"{operand} is indexed by {', '.join(str(p) for p in index)}"
    if any(not np.array_equal(a, b) for a, b in zip(met, again, strict=True)):
        return f"{said}: no formula is known for the axes of an element"
    for axis in on.values():
        name = str(axis.intrinsic_axis)
        if axis.extent > axis.unit and axis.extent % axis.unit and np.any(chosen[name] > points[name]):
            return f"{said}: the end of {axis.name} cuts a tile, and {name} is not the first axis of a sum"
    everywhere = _at(list(np.indices(shape).reshape(len(shape), -1)))
    for axis in on.values():
        lane = _values((lanes[str(axis.intrinsic_axis)],), everywhere)[0]
        assert np.all((lane >= 0) & (lane < axis.unit)), f"{operand}: an element outside the tile"
    return None


def _at(coordinates: list[npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {f"@{d}": c for d, c in enumerate(coordinates)}


def _values(parts: tuple[Int, ...], env: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """The parts at each point; axes that are not in `env` have one position."""
    size = next(iter(env.values())).shape if env else (1,)
    missing = {n: 0 for p in parts for n in free_vars(p) if n not in env}
    return [np.broadcast_to(np.asarray(evaluate(p, {**missing, **env})), size) for p in parts]


@proving
def determined(nest: NestGeometry, operand: str, condition: Bool) -> bool:
    """Whether all points of a tile that meet one element of a windowed operand agree on a condition: only then may the
    element hold a fill where it fails. False if not proved; true of operands that are not windowed."""
    index = nest.intrinsic.windows.get(operand)
    if index is None:
        return True
    solver = z3.Solver()
    solver.set("timeout", _Z3_TIMEOUT_MS)
    held, coordinates = [], []
    for tag in ("", "'"):
        lanes = {a.intrinsic_axis: z3.Int(f"lane:{a.intrinsic_axis}{tag}") for a in nest.axes if a.intrinsic_axis}
        env: dict[str, Any] = {}
        for axis in nest.axes:
            tile, lane = z3.Int(f"tile:{axis.name}"), lanes.get(axis.intrinsic_axis or "", z3.IntVal(0))
            here = tile * axis.unit + lane
            solver.add(tile >= 0, lane >= 0, lane < axis.unit, here < axis.extent)
            position = {"@": here}
            env |= {n: to_z3(value, position) for n, value in axis.program_values(Var("@")).items()}
        held.append(to_z3(condition, env))
        coordinates.append([to_z3(part, {str(n): lane for n, lane in lanes.items()}) for part in index])
    solver.add(*(a == b for a, b in zip(*coordinates, strict=True)), held[0] != held[1])
    return bool(solver.check() == z3.unsat)


def unmet(intrinsic: Intrinsic) -> str | None:
    """Why an accumulator's elements cannot be stored: some that no step writes; None where each is written."""
    target = intrinsic.accumulator
    axes = {a.name: a.extent for a in intrinsic.axes}
    for name, extent in zip(intrinsic.operand_axes[target.name], target.shape, strict=True):
        if extent > 1 and axes.get(name or "", 0) < extent:
            return f"the instruction never writes some elements of {target.name}"
    return None
