"""A condition that is monotone in an axis bounds its loop: `j <= i` in a loop over `j` is the bound `j < i + 1`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autosched.ir.nodes import Axis
from autosched.ir.rewrites.proof import TIMEOUT_MS, Lemma
from autosched.logic import (
    Affine,
    Bool,
    Compare,
    Const,
    Int,
    Var,
    affine,
    all_of,
    bounds_of,
    conjuncts,
    free_vars,
    interval,
    maximum,
    minimum,
    to_z3,
)
from autosched.logic.questions import asked
from autosched.logic.solver import own_context, proving, z3

Ranges = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class NarrowedAxis:
    """An axis with narrower bounds, the conditions that these stand for, and the proof that they do."""

    axis: Axis
    taken: tuple[Bool, ...]
    lemma: Lemma


def bounded(axis: Axis, condition: Bool, known: frozenset[str], ranges: Ranges) -> NarrowedAxis | None:
    """The axis bounded by those parts of `condition` that hold on one side of a number that the variables `known` tell;
    None where there is none. `ranges` are the least and greatest values of those with constant bounds."""
    narrowed, taken = axis, list[Bool]()
    for part in conjuncts(condition):
        found = _side(axis.name, part, known)
        if found is None:
            continue
        lower, upper = found
        if lower is not None:
            narrowed = replace(narrowed, lower=_least_needed(maximum, narrowed.lower, lower, ranges))
        if upper is not None:
            narrowed = replace(narrowed, upper=_least_needed(minimum, narrowed.upper, upper, ranges))
        taken.append(part)
    if not taken:
        return None
    lemma = _proved(axis, narrowed, all_of(*taken), ranges)
    return NarrowedAxis(narrowed, tuple(taken), lemma) if lemma.proved else None


def constant_ranges(axes: Iterable[Axis]) -> dict[str, tuple[int, int]]:
    """Least and greatest values of axes with constant bounds."""
    return {
        a.name: (a.lower.value, a.upper.value - 1)
        for a in axes
        if isinstance(a.lower, Const) and isinstance(a.upper, Const)
    }


def _side(name: str, part: Bool, known: frozenset[str]) -> tuple[Int | None, Int | None] | None:
    """The lower and the upper bound that a comparison is of a variable."""
    if not isinstance(part, Compare) or part.op == "!=":
        return None
    form = affine(part.left - part.right)
    if form is None or abs(form.coefficient(name)) != 1 or not free_vars(part) - {name} <= known:
        return None
    sign = form.coefficient(name)
    rest = Affine({n: c for n, c in form.coefficients.items() if n != name}, form.constant)
    at = _expression(rest.scaled(-sign))
    op = part.op if sign > 0 else {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(part.op, part.op)
    match op:
        case "<":
            return None, at
        case "<=":
            return None, at + 1
        case ">":
            return at + 1, None
        case ">=":
            return at, None
    return at, at + 1


def _expression(form: Affine) -> Int:
    result: Int = Const(0)
    for name, c in sorted(form.coefficients.items(), key=lambda term: term[1] < 0):
        result = result + Var(name) * c if c > 0 else result - Var(name) * -c
    return result + form.constant


def _least_needed(choose: Any, old: Int, new: Int, ranges: Ranges) -> Int:
    """`choose(old, new)`, or one of the two where it is always that one."""
    try:
        (a, b), (c, d) = bounds_of(old)(ranges), bounds_of(new)(ranges)
    except (KeyError, ValueError):
        return choose(old, new)  # type: ignore[no-any-return]
    if choose is maximum:
        return old if a >= d else new if c >= b else maximum(old, new)
    return old if b <= c else new if d <= a else minimum(old, new)


@proving
def _proved(axis: Axis, narrowed: Axis, condition: Bool, ranges: Ranges) -> Lemma:
    """That the points of the axis where the condition holds are those of the narrower one."""
    start = time.perf_counter()
    own = own_context()
    names = {n: z3.Int(n, own) for e in (axis.lower, axis.upper, condition) for n in free_vars(e)}
    j = names.setdefault(axis.name, z3.Int(axis.name, own))

    def inside(a: Axis) -> Any:
        return z3.And(to_z3(a.lower, names, own) <= j, j < to_z3(a.upper, names, own))

    solver = z3.Solver(ctx=own)
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*(z3.And(low <= names[n], names[n] <= high) for n, (low, high) in ranges.items() if n in names))
    solver.add(inside(narrowed) != z3.And(inside(axis), to_z3(condition, names, own)))
    answer = solver.check()
    whole, part = (f"{a.lower} <= {axis.name} < {a.upper}" for a in (axis, narrowed))
    length = narrowed.upper - narrowed.lower
    empty = free_vars(length) <= ranges.keys() and interval(length, ranges)[0] <= 0
    none = f" (nowhere if {narrowed.upper} <= {narrowed.lower})" if empty else ""
    claim = f"{whole} and {condition} exactly where {part}{none}"
    asked("rewrite", f"bounds: {claim}", solver, answer)
    verdict = {"unsat": "proved", "sat": "no"}.get(str(answer), "unknown")
    return Lemma(f"{axis.name}: bounds", claim, (), verdict, "z3", time.perf_counter() - start)
