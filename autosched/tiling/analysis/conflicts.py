"""Decides whether two accesses can touch one element: affine reasoning, then a few concrete points, then z3.

A `Question` asks for an instance x of the first statement and y of the second that touch one element, under a
condition on how far apart they are. `meeting` answers with such a pair or None; None is a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor, gcd

from autosched.ir.program import Program
from autosched.logic import Affine, Bool, Int, Var, affine, all_of, any_of, evaluate, interval, to_z3
from autosched.logic.solver import proving, z3
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.analysis.accesses import Statement, TensorAccess

_Z3_TIMEOUT_MS = 2000
Point = dict[str, int]


@dataclass(frozen=True)
class Question:
    """Is there x in `first` and y in `second`, touching one element, with equal values of the axes `equal`, different
    values of `differ`, and y before x in the order of the shared axes `before` (or, with `or_same`, at x's)?"""

    first: Statement
    first_access: TensorAccess
    second: Statement
    second_access: TensorAccess
    equal: tuple[str, ...] = ()
    differ: str | None = None
    before: tuple[str, ...] = ()
    or_same: bool = False


@dataclass(frozen=True)
class Meeting:
    """Two instances that touch one element; both None where a conflict is assumed: a subscript depends on data, or the
    solver gave up."""

    first: Point | None = None
    second: Point | None = None


@dataclass(frozen=True)
class Sizes:
    """What is known of symbolic sizes: inclusive ranges, and formulas (multiples)."""

    ranges: Mapping[str, tuple[int, int]]
    facts: Bool


def sizes_of(program: Program) -> Sizes:
    """Ranges of symbolic sizes, narrowed by the program's assumptions about them."""
    ranges = dict(program.symbolic)
    facts = []
    for a in program.assumptions:
        if a.subject in ranges:
            low, high = ranges[a.subject]
            low = low if a.low is None else max(low, ceil(a.low))
            high = high if a.high is None else min(high, floor(a.high))
            ranges[a.subject] = (low, high)
            if a.multiple:
                facts.append((Var(a.subject) % a.multiple).eq(0))
    return Sizes(ranges, all_of(*facts))


def meeting(question: Question, sizes: Sizes) -> Meeting | None:
    """A pair of instances as the question asks for, or None where there provably is none."""
    boxes = _boxes(question, sizes)
    if boxes is None:
        return None
    equations = _equations(question)
    distances = _distances(question, equations, boxes)
    if distances is None or _ruled_out(question, distances):
        return None
    system = _System(equations, _conditions(question))
    unknown = None in question.first_access.index or None in question.second_access.index
    for x, y in _guesses(question, sizes, distances, equations):
        if _satisfied(system, sizes, {**x, **{_other(n): v for n, v in y.items()}}):
            return Meeting() if unknown else Meeting(x, y)
    return _by_z3(question, system, sizes, unknown)


# The question as formulas over the names of the first statement and primed names of the second


def _other(name: str) -> str:
    return name + "'"


@dataclass(frozen=True)
class _System:
    equations: tuple[tuple[Int, Int], ...]
    conditions: Bool


def _equations(q: Question) -> tuple[tuple[Int, Int], ...]:
    rename = _renamed(q)
    pairs = zip(q.first_access.index, q.second_access.index, strict=True)
    equations = [(i, substitute_int(j, rename)) for i, j in pairs if i is not None and j is not None]
    return (*equations, *((Var(n), Var(_other(n))) for n in q.equal))


def _conditions(q: Question) -> Bool:
    rename = _renamed(q)
    parts = [*_domain(q.first), q.first.guard, q.first_access.when]
    parts += [substitute_bool(p, rename) for p in (*_domain(q.second), q.second.guard, q.second_access.when)]
    if q.differ is not None:
        parts.append(Var(q.differ).ne(Var(_other(q.differ))))
    if q.before:
        parts.append(_earlier(tuple(_other(n) for n in q.before), q.before, q.or_same))
    return all_of(*parts)


def _renamed(q: Question) -> dict[str, Int]:
    return {n: Var(_other(n)) for n in q.second.names}


def _domain(s: Statement) -> list[Bool]:
    return [b for a in s.axes for b in (Var(a.name) >= a.lower, Var(a.name) < a.upper)]


def _earlier(left: tuple[str, ...], right: tuple[str, ...], or_same: bool) -> Bool:
    """`left` lexicographically before `right`."""
    pairs = [(Var(a), Var(b)) for a, b in zip(left, right, strict=True)]
    ways = [all_of(*(a.eq(b) for a, b in pairs[:n]), pairs[n][0] < pairs[n][1]) for n in range(len(pairs))]
    return any_of(*ways, *([all_of(*(a.eq(b) for a, b in pairs))] if or_same else []))


# Affine reasoning


def _boxes(q: Question, sizes: Sizes) -> dict[str, tuple[int, int]] | None:
    """Inclusive ranges of all names; None where a statement has no instance."""
    boxes = dict(sizes.ranges)
    for statement, tag in ((q.first, ""), (q.second, "'")):
        local = dict(sizes.ranges)
        for a in statement.axes:
            low, high = interval(a.lower, local)[0], interval(a.upper, local)[1] - 1
            if high < low:
                return None
            local[a.name] = boxes[a.name + tag] = (low, high)
    return boxes


def _distances(
    q: Question, equations: tuple[tuple[Int, Int], ...], boxes: dict[str, tuple[int, int]]
) -> dict[str, int] | None:
    """`x - y` of the axes for which it is fixed: since either has one value, or by an equation in which all others
    that it names are too short, or fixed themselves; None where some equation has no solution."""
    gaps = []
    for left, right in equations:
        a, b = affine(left), affine(right)
        if a is not None and b is not None:
            gaps.append(a.plus(b, -1))
            continue
        low, high = _span(left - right, boxes)
        if low > 0 or high < 0:
            return None
    shared = [n for n in q.first.names if n in q.second.names]
    single = [n for n in shared if all(boxes[m][0] == boxes[m][1] for m in (n, _other(n)))]
    fixed = {n: boxes[n][0] - boxes[_other(n)][0] for n in single}
    known = -1
    while known < len(fixed):  # what one equation fixes another may need
        known = len(fixed)
        for gap in gaps:
            rest = _with_distances(gap, fixed)
            if not _solvable(rest, boxes):
                return None
            for name, distance in _fixed(rest, boxes):
                if distance is None or fixed.setdefault(name, distance) != distance:
                    return None
    return fixed


def _with_distances(gap: Affine, fixed: dict[str, int]) -> Affine:
    """The equation with x as y and their distance, where that is known."""
    coefficients, constant = dict(gap.coefficients), gap.constant
    for name, distance in fixed.items():
        c = coefficients.pop(name, 0)
        if c:
            coefficients[_other(name)] = coefficients.get(_other(name), 0) + c
            constant += c * distance
    return Affine({n: c for n, c in coefficients.items() if c}, constant)


def _span(node: Int, boxes: dict[str, tuple[int, int]]) -> tuple[int, int]:
    try:
        return interval(node, boxes)
    except ValueError:
        return -1, 1


def _solvable(gap: Affine, boxes: dict[str, tuple[int, int]]) -> bool:
    """Whether `gap = 0` passes the divisibility and the range test (necessary, not sufficient)."""
    divisor = gcd(*gap.coefficients.values())
    if divisor == 0:
        return gap.constant == 0
    low = gap.constant + sum(min(c * boxes[n][0], c * boxes[n][1]) for n, c in gap.coefficients.items())
    high = gap.constant + sum(max(c * boxes[n][0], c * boxes[n][1]) for n, c in gap.coefficients.items())
    return gap.constant % divisor == 0 and low <= 0 <= high


def _fixed(gap: Affine, boxes: dict[str, tuple[int, int]]) -> Iterator[tuple[str, int | None]]:
    """The axes whose distance `c * (x - x') + rest = 0` fixes, since the rest is too short for two; None where it is
    too short for any. (`64 t + i = 64 t' + i'` with i below 64: t is t'.)"""
    for name, c in gap.coefficients.items():
        if name.endswith("'") or gap.coefficient(_other(name)) != -c:
            continue
        rest = Affine({n: k for n, k in gap.coefficients.items() if n not in (name, _other(name))}, gap.constant)
        low = rest.constant + sum(min(k * boxes[n][0], k * boxes[n][1]) for n, k in rest.coefficients.items())
        high = rest.constant + sum(max(k * boxes[n][0], k * boxes[n][1]) for n, k in rest.coefficients.items())
        first, last = sorted((-high / c, -low / c))
        if ceil(first) == floor(last):
            yield name, ceil(first)
        elif ceil(first) > floor(last):
            yield name, None


def _ruled_out(q: Question, distances: dict[str, int]) -> bool:
    """Whether the fixed distances contradict what the question asks of them."""
    if q.differ is not None and distances.get(q.differ) == 0:
        return True
    for name in q.before:  # y before x: the first distance that is not 0 is positive
        distance = distances.get(name)
        if distance is None or distance > 0:
            return False
        if distance < 0:
            return True
    return bool(q.before) and not q.or_same


# Concrete points, then z3


LOW, MIDDLE, LAST = range(3)
"""Where in its loops a guess is."""


def _guesses(
    q: Question, sizes: Sizes, distances: dict[str, int], equations: tuple[tuple[Int, Int], ...]
) -> Iterator[tuple[Point, Point]]:
    """A few likely pairs: neighbours at the low end, in the middle and at the end of the domain, as they are and with
    the axes that only one of them has moved to where they touch one element."""
    env: Point = {n: high for n, (_, high) in sizes.ranges.items()}
    step = q.differ or next((n for n in reversed(q.before) if n not in distances), None)
    lone = {n for n in q.first.names if n not in q.second.names}
    lone |= {_other(n) for n in q.second.names if n not in q.first.names}
    for part in (LOW, MIDDLE, LAST):
        for sign in (1, -1):
            for s in (q.first, q.second):
                base = dict(env)
                for a in s.axes:
                    low, high = evaluate(a.lower, base), evaluate(a.upper, base)
                    if part == LOW:
                        base[a.name] = low + (sign < 0)
                    else:
                        base[a.name] = high - 1 if part == LAST and a.name != step else (low + high) // 2
                point = {n: base[n] for n in s.names}
                if s is q.first:
                    partner = {n: v - distances.get(n, sign if n == step else 0) for n, v in point.items()}
                    pair = point, {n: partner.get(n, 0) for n in q.second.names}
                else:
                    back = {n: v + distances.get(n, sign if n == step else 0) for n, v in point.items()}
                    pair = {n: back.get(n, 0) for n in q.first.names}, point
                yield pair
                if lone:
                    yield _moved(pair, equations, lone)


def _moved(pair: tuple[Point, Point], equations: tuple[tuple[Int, Int], ...], lone: set[str]) -> tuple[Point, Point]:
    """The pair with the first of the `lone` axes in each equation where it makes both sides equal."""
    values = {**pair[0], **{_other(n): v for n, v in pair[1].items()}}
    free = set(lone)
    for left, right in equations:
        a, b = affine(left), affine(right)
        if a is None or b is None:
            continue
        gap = a.plus(b, -1)
        found = next((n for n in gap.coefficients if n in free and abs(gap.coefficients[n]) == 1), None)
        if found is not None and gap.coefficients.keys() <= values.keys():
            total = gap.constant + sum(c * values[n] for n, c in gap.coefficients.items())
            values[found] -= total * gap.coefficients[found]
            free.discard(found)
    return {n: values[n] for n in pair[0]}, {n: values[_other(n)] for n in pair[1]}


def _satisfied(system: _System, sizes: Sizes, values: Point) -> bool:
    env = {n: high for n, (_, high) in sizes.ranges.items()} | values
    if not evaluate(sizes.facts, env):
        return False
    return bool(evaluate(system.conditions, env)) and all(
        evaluate(a, env) == evaluate(b, env) for a, b in system.equations
    )


@proving
def _by_z3(q: Question, system: _System, sizes: Sizes, unknown: bool) -> Meeting | None:
    names = {*q.first.names, *(_other(n) for n in q.second.names), *sizes.ranges}
    env = {n: z3.Int(n) for n in names}
    solver = z3.Solver()
    solver.set("timeout", _Z3_TIMEOUT_MS)
    for n, (low, high) in sizes.ranges.items():
        solver.add(env[n] >= low, env[n] <= high)
    solver.add(to_z3(sizes.facts, env), to_z3(system.conditions, env))
    solver.add(*(to_z3(a, env) == to_z3(b, env) for a, b in system.equations))
    answer = solver.check()
    if answer == z3.unsat:
        return None
    if answer != z3.sat or unknown:
        return Meeting()
    model = solver.model()

    def value(name: str) -> int:
        return int(model.eval(env[name], model_completion=True).as_long())

    return Meeting({n: value(n) for n in q.first.names}, {n: value(_other(n)) for n in q.second.names})
