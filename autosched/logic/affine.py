"""Affine forms and value intervals of integer expressions: what address analysis asks all day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autosched.logic.expr import Binary, Const, Int, Var, Where


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


def interval(node: Int, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Inclusive bounds of `node` where each variable lies in its inclusive range (KeyError if one has none).

    Affine expressions get exact bounds over a box; others get sound ones.
    """
    return _bounds(_form_or_bounds(node, ranges), ranges)


def _form_or_bounds(node: Int, ranges: Mapping[str, tuple[int, int]]) -> Affine | tuple[int, int]:
    """The affine form where there is one, else bounds: each part of a tree is looked at once."""
    match node:
        case Const(value):
            return Affine({}, value)
        case Var(name):
            return Affine({name: 1}, 0)
        case Binary(op, left, right):
            known, other = _form_or_bounds(left, ranges), _form_or_bounds(right, ranges)
            if isinstance(known, Affine) and isinstance(other, Affine):
                form = _combined(op, known, other)
                if form is not None:
                    return form
            return _applied(op, _bounds(known, ranges), _bounds(other, ranges), node)
        case Where(_, then, otherwise):
            a, b = interval(then, ranges), interval(otherwise, ranges)
            return min(a[0], b[0]), max(a[1], b[1])
    raise ValueError(f"no bounds for {node}")


def _bounds(found: Affine | tuple[int, int], ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    if not isinstance(found, Affine):
        return found
    low = high = found.constant
    for name, c in found.coefficients.items():
        first, last = ranges[name]
        low += c * (first if c > 0 else last)
        high += c * (last if c > 0 else first)
    return low, high


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
