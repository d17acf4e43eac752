"""What a register tile has to visit: units of a reduction, and rows of the tile, that no guard rules out.

    for r in range(max(0, 1 - y), min(3, h + 1 - y)):     a border of zeros above and below an image is not multiplied

A guard bounds an axis where the other axes that it speaks of have one position each. Along the rows of a tile that is
so where the loops over the window and over the tiles are unrolled: the decision `skip`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from autosched.logic import Affine, Bool, Const, Int, Var, any_of, evaluate, maximum, minimum
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.cpu.edges import APART
from autosched.tiling.steps.cpu.edges import conditions as guard_forms
from autosched.tiling.steps.cpu.shared_loads import EACH

MOST_POSITIONS = 1 << 14
"""Positions over which the share of visited units is averaged; beyond, all are taken for visited."""
MOST_UNROLLED = 16
"""Units of a reduction that are unrolled."""
MOST_CALLS = 1024
"""Intrinsic calls that unrolling may leave in one kernel: more take long to build, and leave the instruction cache."""
SKIP = Handle("skip", 0)


def skip(nest: Nest, names: StepNames, steps: tuple[Step, ...]) -> Step:
    """`skip`: rows of the tile for which a guard rules out a position of the window are not computed there. `steps`
    are those that came before; where they keep loads or edges together, there is nothing to skip."""
    row = skipping_row(nest)
    if row is None:
        return Step("skip")
    column, known = names(SKIP.name), {d.name for s in steps for d in s.decisions}
    calls: Int = Var(names("accumulators")) * Var(names.tiles(row))
    calls = calls * prod(a.units for a in unrolled(nest, row))
    if names("unroll") in known:
        calls = calls * Var(names("unroll"))
    said = f"{{calls}} calls unrolled > {MOST_CALLS:,}"
    rule = Rule(column, any_of(Var(column).eq(0), calls <= MOST_CALLS), said, {"calls": calls})
    inert: list[Bool] = [Var(names.register(row)).eq(1)]
    inert += [Var(names("loads")).ne(EACH)] if names("loads") in known else []
    inert += [Var(names("edges")).eq(APART)] if names("edges") in known else []
    return Step("skip", (Decision(column, (0, 1), ("no", "yes")),), (rule,), inert={column: any_of(*inert)})


def skipping_row(nest: Nest) -> NestAxis | None:
    """The row of the register tile along which a guard may be skipped: the innermost that one ties to loops around the
    depth, and to nothing else. Channels first, the depth is a line of the window: lines of the image are skipped."""
    if nest.intrinsic.matrices is not None:
        return None
    rows = [a for a in tiled_axes(nest) if not a.intrinsic_axis]
    return next((a for a in reversed(rows) if unrolled(nest, a)), None)


def unrolled(nest: Nest, row: NestAxis) -> tuple[NestAxis, ...]:
    """The reduction axes that guards tie to this row and to nothing else, where all of them can be unrolled."""
    window = {a.name: a for a in nest.reduction if a is not nest.depth and a.unit == 1}
    tied: set[str] = set()
    for form in bounding(nest, row):
        others = form.coefficients.keys() - {row.name}
        if others and others <= window.keys():
            tied |= others
    found = tuple(window[n] for n in window if n in tied)
    return found if prod(a.units for a in found) <= MOST_UNROLLED else ()


@of_nest
def bounding(nest: Nest, axis: NestAxis) -> tuple[Affine, ...]:
    """The stage's guards that speak of an axis, as sums over positions along nest axes that must be below 0; none for
    an axis of which one issue takes several."""
    if axis.unit != 1:
        return ()
    return tuple(f for f in nest.guard_sums if f is not None and f.coefficient(axis.name))


def visited(nest: Nest, axis: NestAxis, single: Mapping[str, Int], first: Int, count: int) -> tuple[Int, Int]:
    """Of `count` units of an axis from `first` on: the first that is not ruled out, and the one after the last, both
    counted from `first`. `single` are the positions of the axes that have but one."""
    lower: list[Int] = [Const(0)]
    upper: list[Int] = [Const(count)]
    for form in bounding(nest, axis):
        others = {a: c for a, c in form.coefficients.items() if a != axis.name}
        if not others.keys() <= single.keys():
            continue
        rest: Int = Const(form.constant)
        for name, c in others.items():
            rest = rest + single[name] * c
        factor = form.coefficient(axis.name)
        if factor > 0:  # factor * unit < -rest
            upper.append((-rest - 1) // factor + 1 - first)
        else:  # -factor * unit > rest
            lower.append(rest // -factor + 1 - first)
    return maximum(*lower), minimum(*upper)


def untouched(nest: Nest, row: NestAxis, first: int, count: int) -> bool:
    """Whether guards rule out none of `count` units of a skipped row from `first` on, wherever the window stands."""
    window = unrolled(nest, row)
    for place in product(*(range(a.units) for a in window)):
        at: dict[str, Int] = {a.name: Const(p) for a, p in zip(window, place, strict=True)}
        lower, upper = visited(nest, row, at, Const(first), count)
        if (evaluate(lower, {}), evaluate(upper, {})) != (0, count):
            return False
    return True


def settled(nest: Nest, operand: str, single: frozenset[str], rows: frozenset[str], loops: frozenset[str]) -> bool:
    """Whether an operand's guard holds wherever the tile looks: each part ties one of the reduction `loops`, or one of
    the skipped `rows`, to axes with one position."""
    forms = guard_forms(nest, operand)
    if forms is None:
        return False
    names = [f.coefficients.keys() for f in forms]
    return all(
        any(a in loops and n - {a} <= single for a in n) or any(a in rows and n - {a} <= single | loops for a in n)
        for n in names
    )


@of_nest
def share(nest: Nest, axis: NestAxis, single: frozenset[str]) -> float:
    """The part of a reduction axis's units that is visited, over all positions of the axes in `single`."""
    forms = [f for f in bounding(nest, axis) if f.coefficients.keys() <= single | {axis.name}]
    names = sorted({a for f in forms for a in f.coefficients} - {axis.name})
    extents = {a.name: a.extent for a in nest.axes}
    if not forms or prod(extents[n] for n in names) > MOST_POSITIONS:
        return 1.0
    total = 0
    for point in product(*(range(extents[n]) for n in names)):
        at = dict(zip(names, point, strict=True))
        total += sum(
            all(f.constant + sum(c * at.get(a, u) for a, c in f.coefficients.items()) < 0 for f in forms)
            for u in range(axis.units)
        )
    return total / (axis.units * max(1, prod(extents[n] for n in names)))
