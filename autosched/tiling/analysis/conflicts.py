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
    system = _system(question)
    boxes = _boxes(question, sizes)
    if boxes is None:
        return None
    distances = _distances(system.equations, boxes)
    if distances is None or _ruled_out(question, distances):
        return None
    unknown = None in question.first_access.index or None in question.second_access.index
    for x, y in _guesses(question, sizes, distances):
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


def _system(q: Question) -> _System:
    rename = {n: Var(_other(n)) for n in q.second.names}
    pairs = zip(q.first_access.index, q.second_access.index, strict=True)
    equations = [(i, substitute_int(j, rename)) for i, j in pairs if i is not None and j is not None]
    equations += [(Var(n), Var(_other(n))) for n in q.equal]
    parts = [*_domain(q.first), q.first.guard, q.first_access.when]
    parts += [substitute_bool(p, rename) for p in (*_domain(q.second), q.second.guard, q.second_access.when)]
    if q.differ is not None:
        parts.append(Var(q.differ).ne(Var(_other(q.differ))))
    if q.before:
        parts.append(_earlier(tuple(_other(n) for n in q.before), q.before, q.or_same))
    return _System(tuple(equations), all_of(*parts))


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


def _distances(equations: tuple[tuple[Int, Int], ...], boxes: dict[str, tuple[int, int]]) -> dict[str, int] | None:
    """`x - y` of the axes for which an equation fixes it; None where some equation has no solution."""
    fixed: dict[str, int] = {}
    for left, right in equations:
        a, b = affine(left), affine(right)
        if a is None or b is None:
            low, high = _span(left - right, boxes)
            if low > 0 or high < 0:
                return None
            continue
        gap = a.plus(b, -1)
        if not _solvable(gap, boxes):
            return None
        for name, distance in _fixed(gap, boxes):
            if distance is None or fixed.setdefault(name, distance) != distance:
                return None
    return fixed


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


def _guesses(q: Question, sizes: Sizes, distances: dict[str, int]) -> Iterator[tuple[Point, Point]]:
    """A few likely pairs: neighbours at the low end and in the middle of the domain."""
    env: Point = {n: high for n, (_, high) in sizes.ranges.items()}
    step = q.differ or (q.before[-1] if q.before else None)
    for part in (0, 2):
        for sign in (1, -1):
            for s in (q.first, q.second):
                base = dict(env)
                for a in s.axes:
                    low, high = evaluate(a.lower, base), evaluate(a.upper, base)
                    base[a.name] = low + (sign < 0) if part == 0 else (low + high) // 2
                point = {n: base[n] for n in s.names}
                partner = {n: v - distances.get(n, sign if n == step else 0) for n, v in point.items()}
                if s is q.first:
                    yield point, {n: partner.get(n, 0) for n in q.second.names}
                else:
                    back = {n: v + distances.get(n, sign if n == step else 0) for n, v in point.items()}
                    yield {n: back.get(n, 0) for n in q.first.names}, point


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
