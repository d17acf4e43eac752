"""Loops split by a remainder that a guard fixes: `if (y + 1 - r) % 2 == 0` leaves every other r, so only those run.

A transposed convolution of stride d asks each output for the taps that hit it. Split `y = d yo + yi`; the guard then
says which r belongs to yi, so `r = d ro + f(yi)` runs over 1/d of the taps and the guard is gone. The remainders become
the outermost loops, and what is left inside is a plain convolution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.ir.nodes import Assign, Axis, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.value import Condition, Index, Value, map_value, reads
from autosched.logic import (
    Affine,
    And,
    Binary,
    Bool,
    Compare,
    Const,
    Int,
    Not,
    Or,
    Var,
    affine,
    all_of,
    any_of,
    conjuncts,
)
from autosched.logic.expr import binary, compare, negate
from autosched.logic.walk import substitute_bool, substitute_int


@dataclass(frozen=True)
class StageNest:
    """One stage as written: spatial loops, an initial value, reduction loops, guards and the accumulation."""

    spatial: tuple[Axis, ...]
    init: Assign
    reduction: tuple[Axis, ...]
    guards: tuple[Condition, ...]
    update: Assign


@dataclass(frozen=True)
class Residue:
    """`form % divisor == remainder`, over the spatial axis y and the reduction axis r; it holds exactly where
    `r % divisor` is `slope * (y % divisor) + offset`."""

    guard: Bool
    divisor: int
    y: Axis
    r: Axis
    slope: int
    offset: int


def split_residues(program: Program) -> tuple[Program, tuple[str, ...]] | None:
    """The program with a nest's guards on remainders turned into splits of two loops each, and why it computes the
    same; None where there is no such guard."""
    taken = {axis.name for stage in program.stages for axis in stage.axes} | set(program.tensors) | set(program.sizes)
    taken |= {*program.scalars, *program.symbolic, *program.dtypes}
    for k, stmt in enumerate(program.body):
        nest = _nest(stmt)
        proof: list[str] = []
        while nest is not None and (found := _residue(nest)) is not None:
            y, r, d = found.y.name, found.r.name, found.divisor
            proof.append(
                f"{found.guard} holds where {r} % {d} is {found.slope} * ({y} % {d}) + {found.offset}, as each of the "
                f"{d} remainders shows; iterations of {y} write elements of their own, which nothing else in it reads"
            )
            nest = _split(nest, found, _fresh(y, taken))
        if nest is not None and proof:
            after = (*program.body[:k], _statement(nest), *program.body[k + 1 :])
            return replace(program, body=after), tuple(proof)
    return None


def _fresh(name: str, taken: set[str]) -> str:
    """A name for the remainder of an axis."""
    fresh, n = f"{name}_rest", 2
    while fresh in taken:
        fresh, n = f"{name}_rest{n}", n + 1
    taken.add(fresh)
    return fresh


def _nest(stmt: Statement) -> StageNest | None:
    """The statement as a nest whose spatial iterations are independent: each writes an element of its own, as its
    subscripts show, and none is read but by the accumulation."""
    spatial: list[Axis] = []
    while isinstance(stmt, Loop):
        spatial.append(stmt.axis)
        if len(stmt.body) != 1:
            break
        stmt = stmt.body[0]
    if not isinstance(stmt, Loop) or len(stmt.body) != 2:
        return None
    init, inner = stmt.body
    reduction: list[Axis] = []
    guards: list[Condition] = []
    while not isinstance(inner, Assign):
        if len(inner.body) != 1:
            return None
        if isinstance(inner, Loop):
            reduction.append(inner.axis)
        else:
            guards.append(inner.condition)
        inner = inner.body[0]
    same = isinstance(init, Assign) and init.op == "=" and (init.tensor, init.index) == (inner.tensor, inner.index)
    own = all(Var(a.name) in inner.index for a in spatial)
    known = all(isinstance(b, Const) for a in (*spatial, *reduction) for b in (a.lower, a.upper))
    if not (same and own and known) or inner.op == "=" or not isinstance(init, Assign):
        return None
    read = {r.tensor for v in (init.value, inner.value) for r in reads(v)}
    return None if inner.tensor in read else StageNest(tuple(spatial), init, tuple(reduction), tuple(guards), inner)


def _residue(nest: StageNest) -> Residue | None:
    """The first guard that fixes a remainder of a reduction axis by that of one spatial axis."""
    for condition in nest.guards:
        for part in conjuncts(condition) if isinstance(condition, Bool) else ():
            match part:
                case Compare("==", Binary("%", form, Const(d)), Const(c)) if d > 1:
                    found = _solved(nest, part, affine(form), d, c)
                    if found is not None:
                        return found
    return None


def _solved(nest: StageNest, guard: Bool, form: Affine | None, d: int, c: int) -> Residue | None:
    if form is None:
        return None
    moving = {name for name, k in form.coefficients.items() if k % d}
    ys = [a for a in nest.spatial if a.name in moving]
    rs = [a for a in nest.reduction if a.name in moving]
    if len(ys) != 1 or len(rs) != 1 or len(moving) != 2:
        return None
    y, r = ys[0], rs[0]
    if y.lower != Const(0) or r.lower != Const(0) or y.extent % d:
        return None
    ky, kr = form.coefficient(y.name), form.coefficient(r.name)
    solutions = [[m for m in range(d) if (ky * n + kr * m + form.constant) % d == c] for n in range(d)]
    if any(len(s) != 1 for s in solutions):
        return None
    values = [s[0] for s in solutions]
    slope = values[1] - values[0]
    if values != [slope * n + values[0] for n in range(d)]:
        return None
    return Residue(guard, d, y, r, slope, values[0])


def _split(nest: StageNest, found: Residue, rest: str) -> StageNest:
    d, y, r = found.divisor, found.y, found.r
    values: dict[str, Int] = {
        y.name: Var(y.name) * d + Var(rest),
        r.name: Var(r.name) * d + Var(rest) * found.slope + found.offset,
    }
    spatial = (Axis(rest, Const(0), Const(d)), *(_shorter(a, d) if a == y else a for a in nest.spatial))
    reduction = tuple(_shorter(a, d) if a == r else a for a in nest.reduction)
    left = [p for g in nest.guards if isinstance(g, Bool) for p in conjuncts(g) if p != found.guard]
    inside = [] if r.extent % d == 0 else [values[r.name] < r.extent]
    formulas = all_of(*(_tidied(substitute_bool(p, values)) for p in left), *inside)
    others = tuple(_condition(g, values) for g in nest.guards if not isinstance(g, Bool))
    return StageNest(spatial, _assign(nest.init, values), reduction, (formulas, *others), _assign(nest.update, values))


def _shorter(axis: Axis, d: int) -> Axis:
    return replace(axis, upper=Const(-(-axis.extent // d)))


def _statement(nest: StageNest) -> Loop:
    (outer,) = nested(nest.spatial, nest.init, *nested(nest.reduction, under(nest.guards, nest.update)))
    assert isinstance(outer, Loop)
    return outer


def _assign(assign: Assign, values: dict[str, Int]) -> Assign:
    index = tuple(_index(i, values) for i in assign.index)
    return replace(assign, index=index, value=_value(assign.value, values))


def _value(value: Value, values: dict[str, Int]) -> Value:
    return map_value(
        value,
        on_int=lambda i: whole(substitute_int(i, values)),
        on_bool=lambda b: _tidied(substitute_bool(b, values)),
    )


def _index(index: Index, values: dict[str, Int]) -> Index:
    return whole(substitute_int(index, values)) if isinstance(index, Int) else _value(index, values)


def _condition(condition: Condition, values: dict[str, Int]) -> Condition:
    return _tidied(substitute_bool(condition, values)) if isinstance(condition, Bool) else _value(condition, values)


def _tidied(formula: Bool) -> Bool:
    match formula:
        case Compare(op, left, right):
            return compare(op, whole(left), whole(right))
        case And(parts):
            return all_of(*(_tidied(p) for p in parts))
        case Or(parts):
            return any_of(*(_tidied(p) for p in parts))
        case Not(part):
            return negate(_tidied(part))
        case _:
            return formula


def whole(node: Int) -> Int:
    """The same number with divisions carried out where every term but the constant divides: (2y + 2r + 1) // 2 is
    y + r."""
    form = affine(node)
    if form is not None:
        return _sum(form)
    match node:
        case Binary("//" | "%" as op, left, Const(d)) if d > 0:
            inner = whole(left)
            form = affine(inner)
            if form is None or any(k % d for k in form.coefficients.values()):
                return binary(op, inner, d)
            if op == "%":
                return Const(form.constant % d)
            return _sum(Affine({n: k // d for n, k in form.coefficients.items()}, form.constant // d))
        case Binary(op, left, right):
            left, right = whole(left), whole(right)
            found = binary(op, left, right)
            form = affine(found)
            return found if form is None else _sum(form)
        case _:
            return node


def _sum(form: Affine) -> Int:
    total: Int = Const(form.constant)
    for name, k in sorted(form.coefficients.items()):
        total = Var(name) * k + total
    return total
