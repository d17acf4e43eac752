"""Steps that guards leave out of a register tile's sums: `if j <= i: y[i] += A[i, j] * x[j]`.

What a guard excludes is not multiplied, since a zero times NaN is NaN. A guard that is the same in all lanes is a
branch around the call; one that tells lanes apart keeps the sum of those where it fails, which a machine with masked
operations does in the same instruction. Along the depth the guard is asked only where some of a tile's elements differ:
what it excludes for all is not visited, and what it allows for all is not asked about.

    for k in 0..i0:                plain, for a tile of rows i0 .. i0 + 5
    for k in i0..min(i0 + 6, n):   each row asks whether k <= i
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.positions import LANE, Position, elements
from autosched.codegen.tree.kernel import Assign, If, IntrinsicCall, Lane, Stmt
from autosched.ir.value import Read, Select
from autosched.logic import FALSE, TRUE, Affine, Bool, Const, Int, Var, all_of, free_vars, maximum, minimum
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis

Parts = tuple[tuple[Bool, Affine | None], ...]
"""Guards, each with its sum over positions along nest axes that is below 0 where it holds; None for other kinds."""


def stepped(
    nest: Nest,
    parts: Parts,
    at: Mapping[str, Position],
    body: tuple[Stmt, ...],
    call: IntrinsicCall,
    sums: Read,
    kept: str,
    lane: Lane | None,
) -> tuple[Stmt, ...]:
    """`body` and the call, whose accumulator is `sums`, where the guards hold; the register `kept` has what other lanes
    had before."""
    index = tuple(i for i in sums.index if isinstance(i, Int))
    lanes = nest.lane_coordinates(nest.intrinsic.accumulator.name, index[-1])
    axes = nest.at(elements(nest, at, lanes))
    placed = [substitute_bool(part, axes) for part, _ in parts]
    alike = all_of(*(c for c in placed if LANE not in free_vars(c)))
    by_lane = [c for c in placed if LANE in free_vars(c)]
    stmts: tuple[Stmt, ...] = (*body, call)
    if by_lane:
        place = (Const(0), index[-1])
        before = Assign(kept, place, sums, lane)
        old = Read(kept, place, sums.dtype)
        after = Assign(sums.tensor, index, Select(all_of(*by_lane), sums, old, sums.dtype), lane)
        stmts = (*body, before, call, after)
    return stmts if alike == TRUE else (If(alike, stmts),)


@dataclass(frozen=True)
class Spans:
    """Positions along the depth, for all elements of a tile: outside of `reached` guards hold for none, inside of
    `plain` for all; `asked` are those that bound neither. A bound that nothing gives is None."""

    reached: tuple[Int | None, Int | None]
    plain: tuple[Int | None, Int | None]
    asked: Parts


def spans(nest: Nest, parts: Parts, axis: NestAxis, at: Mapping[str, Position], counts: Mapping[str, int]) -> Spans:
    """What guards say of the depth at a tile with so many units along its axes."""
    least: tuple[list[Int], list[Int]] = [], []
    most: tuple[list[Int], list[Int]] = [], []
    asked = []
    for part, form in parts:
        c = form.coefficient(axis.name) if form is not None else 0
        if form is None or not c or axis.unit != 1:
            asked.append((part, form))
            continue
        low, high = _within(nest, replace(form, coefficients=_without(form, axis.name)), at, counts)
        if c > 0:  # c * position < -rest
            least[1].append((-low - 1) // c + 1)
            most[1].append((-high - 1) // c + 1)
        else:  # -c * position > rest
            least[0].append(low // -c + 1)
            most[0].append(high // -c + 1)
    return Spans(
        (maximum(*least[0]) if least[0] else None, minimum(*least[1]) if least[1] else None),
        (maximum(*most[0]) if most[0] else None, minimum(*most[1]) if most[1] else None),
        tuple(asked),
    )


def any_counts(nest: Nest, at: Mapping[str, Position], counts: Mapping[str, int]) -> Bool:
    """Where a guard over spatial axes lets some sum of a tile count: elsewhere all are dropped again. A guard that is
    no sum may let any."""
    return _any_counts(nest, at, counts, (form for form in nest.accumulate_sums if form is not None))


def all_count(nest: Nest, at: Mapping[str, Position], counts: Mapping[str, int]) -> Bool:
    """Where guards over spatial axes let each sum of a tile count; nowhere if one of them is no sum."""
    forms = nest.accumulate_sums
    known = [_within(nest, form, at, counts)[1] < 0 for form in forms if form is not None]
    return all_of(*known) if len(known) == len(forms) else FALSE


@dataclass(frozen=True)
class CountedVectors:
    """A part of a tile: where it is all that counts, its size in units along each axis, and the first unit that is
    computed of an axis that does not begin with 0."""

    where: Bool
    counts: dict[str, int]
    first: Mapping[str, int] = field(default_factory=dict)


def counted_vectors(nest: Nest, at: Mapping[str, Position], counts: Mapping[str, int]) -> Iterator[CountedVectors]:
    """The vectors of a tile that have a sum which counts: up to the last of them where guards let fewer count the
    farther along an axis of vectors; of tiles whose last one counts, those from the first on where they let fewer count
    the nearer to the beginning. All, everywhere, where they do neither."""
    axis = next((a for a in nest.spatial if a.unit > 1 and counts.get(a.name, 1) > 1 and any(_along(nest, a))), None)
    if axis is None:
        yield CountedVectors(TRUE, dict(counts))
        return
    ending, beginning = _along(nest, axis)
    last = counts[axis.name] - 1

    def counting(unit: int, forms: Sequence[Affine]) -> Bool:
        here = substitute_int(at[axis.name].unit, {f"{identifier(axis.name)}r": Const(unit)})
        there = {**at, axis.name: replace(at[axis.name], unit=here)}
        return _any_counts(nest, there, {**counts, axis.name: 1}, forms)

    earlier: Bool = FALSE
    whole = counting(last, ending)
    for first in range(last + 1 if beginning else 1):
        counted = counting(first, beginning) if first < last else TRUE
        begin = {axis.name: first} if first else {}
        yield CountedVectors(all_of(whole, counted, ~earlier), dict(counts), begin)
        earlier = counted
    longer = whole
    for count in range(last, 0, -1) if ending else ():
        reached = counting(count - 1, ending) if count > 1 else TRUE
        yield CountedVectors(all_of(reached, ~longer), {**counts, axis.name: count})
        longer = reached


def _along(nest: Nest, axis: NestAxis) -> tuple[list[Affine], list[Affine]]:
    """The guards that let fewer sums count the farther along an axis, and those that let more."""
    forms = [f for f in nest.accumulate_sums if f is not None]
    factors = [f.coefficient(axis.name) for f in forms]
    pairs = list(zip(forms, factors, strict=True))
    beginning = [f for f, c in pairs if c < 0] if nest.intrinsic.matrices is None else []
    return [f for f, c in pairs if c > 0], beginning


def _any_counts(nest: Nest, at: Mapping[str, Position], counts: Mapping[str, int], forms: Iterable[Affine]) -> Bool:
    return all_of(*(_within(nest, form, at, counts)[0] < 0 for form in forms))


def _within(nest: Nest, form: Affine, at: Mapping[str, Position], counts: Mapping[str, int]) -> tuple[Int, Int]:
    """The least and the greatest value of a sum over positions, of all elements of a tile. What is no axis (a size that
    is not known) is the same for all."""
    low: Int = Const(form.constant)
    high: Int = Const(form.constant)
    for name, factor in form.coefficients.items():
        first: Int = Var(name)
        last = first
        if name in nest.by_name:
            first, last = ends(nest.by_name[name], at[name].unit, counts.get(name, 1))
        low, high = (
            (low + first * factor, high + last * factor) if factor > 0 else (low + last * factor, high + first * factor)
        )
    return low, high


def _without(form: Affine, name: str) -> dict[str, int]:
    return {n: c for n, c in form.coefficients.items() if n != name}


def ends(axis: NestAxis, unit: Int, count: int) -> tuple[Int, Int]:
    """The first and the last position of a tile of `count` units along an axis."""
    var = f"{identifier(axis.name)}r"
    first, last = (substitute_int(unit, {var: Const(n)}) for n in (0, count - 1))
    return first * axis.unit, last * axis.unit + (axis.unit - 1)
