"""Affine forms and value intervals of integer expressions: what address analysis asks all day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from autosched.logic.expr import Binary, Bool, Compare, Const, Int, Var, Where

Ranges: TypeAlias = Mapping[str, tuple[int, int]]
Bounds: TypeAlias = Callable[[Ranges], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Affine:
    """`sum(coefficients[v] * v) + constant`; absent variables have coefficient 0."""

    coefficients: dict[str, int] = field(default_factory=dict)
    constant: int = 0

    def coefficient(self, name: str) -> int:
        return self.coefficients.get(name, 0)

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        total = dict(self.coefficients)
        for name, c in other.coefficients.items():
            total[name] = total.get(name, 0) + factor * c
        return Affine({n: c for n, c in total.items() if c}, self.constant + factor * other.constant)

    @property
    def expression(self) -> Int:
        """The sum as an expression, its variables in the order of their names."""
        total: Int = Const(0)
        for name, c in sorted(self.coefficients.items()):
            total = total + Var(name) * c
        return total + self.constant

    def scaled(self, factor: int) -> Affine:
        return Affine({n: c * factor for n, c in self.coefficients.items() if c * factor}, self.constant * factor)


def affine(node: Int) -> Affine | None:
    """The affine form of `node`, or None where it has a true division, remainder, minimum or choice."""
    match node:
        case Const(value):
            return Affine({}, value)
        case Var(name):
            return Affine({name: 1}, 0)
        case Binary("+" | "-" | "*" as op, left, right):
            a, b = affine(left), affine(right)
            return None if a is None or b is None else _combined(op, a, b)
        case _:
            return None


def below_zero(part: Bool) -> Affine | None:
    """A comparison as a sum that is below 0 where it holds; None for a condition that is no comparison of sums."""
    if not isinstance(part, Compare):
        return None
    match part.op:
        case "<":
            return affine(part.left - part.right)
        case "<=":
            return affine(part.left - part.right - 1)
        case ">":
            return affine(part.right - part.left)
        case ">=":
            return affine(part.right - part.left - 1)
        case _:
            return None


def _combined(op: str, a: Affine, b: Affine) -> Affine | None:
    match op:
        case "+" | "-":
            return a.plus(b, 1 if op == "+" else -1)
        case "*" if not b.coefficients:
            return a.scaled(b.constant)
        case "*" if not a.coefficients:
            return b.scaled(a.constant)
        case _:
            return None


def interval(node: Int, ranges: Ranges) -> tuple[int, int]:
    """Inclusive bounds of `node` where each variable lies in its inclusive range (KeyError if one has none).

    Affine expressions get exact bounds over a box; others get sound ones. ValueError where there are none.
    """
    return bounds_of(node)(ranges)


def bounds_of(node: Int) -> Bounds:
    """`interval` of one node for many ranges: its affine parts are found once."""
    return _bounds(form_or_bounds(node))


def form_or_bounds(node: Int) -> Affine | Bounds:
    """The affine form where there is one, else what finds bounds: each part of a tree is looked at once."""
    if type(node) is Binary:  # these three are most nodes, and a match takes longer
        op, known, other = node.op, form_or_bounds(node.left), form_or_bounds(node.right)
        if isinstance(known, Affine) and isinstance(other, Affine):
            form = _combined(op, known, other)
            if form is not None:
                return form
        a, b = _bounds(known), _bounds(other)
        return lambda ranges: _applied(op, a(ranges), b(ranges), node)
    if type(node) is Const:
        return Affine({}, node.value)
    if type(node) is Var:
        return Affine({node.name: 1}, 0)
    if isinstance(node, Where):
        one, or_other = bounds_of(node.then), bounds_of(node.other)
        return lambda ranges: _either(one(ranges), or_other(ranges))
    raise ValueError(f"no bounds for {node}")


def _bounds(found: Affine | Bounds) -> Bounds:
    if not isinstance(found, Affine):
        return found
    constant, terms = found.constant, tuple(found.coefficients.items())
    if not terms:
        return lambda ranges: (constant, constant)

    def over(ranges: Ranges) -> tuple[int, int]:
        low = high = constant
        for name, c in terms:
            first, last = ranges[name]
            if c > 0:
                low, high = low + c * first, high + c * last
            else:
                low, high = low + c * last, high + c * first
        return low, high

    return over


def _either(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return min(a[0], b[0]), max(a[1], b[1])


def _applied(op: str, a: tuple[int, int], b: tuple[int, int], node: Int) -> tuple[int, int]:
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case "//" if b[0] > 0:
            corners = [x // y for x in a for y in b]
            return min(corners), max(corners)
        case "%" if b[0] == b[1] > 0 and a[0] // b[0] == a[1] // b[0]:
            return a[0] % b[0], a[1] % b[0]
        case "%" if b[0] > 0:
            return 0, (min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
    raise ValueError(f"no bounds for {node}")
