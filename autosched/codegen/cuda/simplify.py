"""Simplifies index expressions: sums of atoms, with division and remainder resolved where ranges of variables allow it.

`(a_f % 4 * 8 + 8 * u) // 8 % 4` becomes `a_f % 4 + u` where `u` is known to be small enough. The result has the same
value wherever variables lie in their ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

from autosched.codegen.analysis.known import decided
from autosched.logic import And, Binary, Bool, Compare, Const, Int, Not, Or, Truth, Var, Where, all_of, any_of, interval
from autosched.logic.expr import where

XOR = "^"
"""Exclusive or of two numbers that are not negative: an operator that `logic.expr` lacks."""
Ranges = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Sum:
    """`sum(factor * atom) + constant`."""

    terms: dict[Int, int] = field(default_factory=dict)
    constant: int = 0

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        terms = dict(self.terms)
        for atom, c in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * c
        return Sum({a: c for a, c in terms.items() if c}, self.constant + factor * other.constant)

    def scaled(self, factor: int) -> Sum:
        return Sum({a: c * factor for a, c in self.terms.items() if factor}, self.constant * factor)

    def divided(self, divisor: int) -> Sum:
        """All factors divided by a common divisor."""
        return Sum({a: c // divisor for a, c in self.terms.items()}, self.constant // divisor)

    def node(self) -> Int:
        """The sum as an expression, positive terms first."""
        total: Int | None = None
        ordered = sorted(self.terms.items(), key=lambda item: item[1] < 0)
        if ordered and ordered[0][1] < 0:
            total = Const(self.constant)
            for atom, c in ordered:
                total = Binary("-", total, atom if c == -1 else atom * -c)
            return total
        for atom, c in ordered:
            if total is None:
                total = atom if c == 1 else atom * c
            elif c > 0:
                total = total + (atom if c == 1 else atom * c)
            else:
                total = total - (atom if c == -1 else atom * -c)
        if total is None:
            return Const(self.constant)
        return total + self.constant if self.constant >= 0 else total - -self.constant


class Simplifier:
    """Simplifies under fixed ranges (inclusive bounds of variables; one without a range may have any value)."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = dict(ranges)
        self._known: dict[Int, Sum] = {}
        self._bools: dict[Bool, Bool] = {}

    def number(self, node: Int) -> Int:
        return self.sum(node).node()

    def equal(self, left: Int, right: Int) -> bool:
        """Whether both are shown to be the same number."""
        difference = self.sum(left).plus(self.sum(right), -1)
        return not difference.terms and difference.constant == 0

    def multiple(self, node: Int) -> int:
        """A number that divides `node` whatever its variables are; 0 for zero itself."""
        found = self.sum(node)
        return gcd(found.constant, *found.terms.values())

    def bounds(self, total: Sum) -> tuple[int, int] | None:
        """Inclusive bounds; None where there are none."""
        low = high = total.constant
        for atom, c in total.terms.items():
            found = self._interval(atom)
            if found is None:
                return None
            ends = [c * end for end in found]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _interval(self, atom: Int) -> tuple[int, int] | None:
        if isinstance(atom, Binary) and atom.op == XOR:
            sides = [self._interval(side) for side in (atom.left, atom.right)]
            highs = [side[1] for side in sides if side is not None and side[0] >= 0]
            return (0, (1 << max(highs).bit_length()) - 1) if len(highs) == len(sides) else None
        try:
            return interval(atom, self.ranges)
        except (KeyError, ValueError):
            return None

    def sum(self, node: Int) -> Sum:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = self._sum(node)
        return found

    def _sum(self, node: Int) -> Sum:
        if (sides := exclusive(node)) is not None:
            return self._exclusive(*sides)
        match node:
            case Binary("^", left, right):
                return self._exclusive(left, right)
            case Const(value):
                return Sum({}, value)
            case Var(name):
                known = self.ranges.get(name)
                return Sum({}, known[0]) if known and known[0] == known[1] else Sum({node: 1})
            case Binary("+" | "-" as op, left, right):
                return self._joined(self.sum(left).plus(self.sum(right), 1 if op == "+" else -1))
            case Binary("*", left, right):
                a, b = self.sum(left), self.sum(right)
                if not b.terms:
                    return a.scaled(b.constant)
                return b.scaled(a.constant) if not a.terms else Sum({a.node() * b.node(): 1})
            case Binary("//" | "%" as op, left, right):
                a, b = self.sum(left), self.sum(right)
                if b.terms or b.constant <= 0:
                    return Sum({Binary(op, a.node(), b.node()): 1})
                return self._quotient(a, b.constant) if op == "//" else self._remainder(a, b.constant)
            case Binary("min" | "max" as op, left, right):
                return self._extreme(op, self.sum(left), self.sum(right))
            case Where(condition, then, other):
                found = self.condition(condition)
                if isinstance(found, Truth):
                    return self.sum(then if found.value else other)
                return Sum({where(found, self.number(then), self.number(other)): 1})
        return Sum({node: 1})

    def _exclusive(self, left: Int, right: Int) -> Sum:
        a, b = self.sum(left), self.sum(right)
        if not a.terms and not b.terms:
            return Sum({}, a.constant ^ b.constant)
        if not a.terms and a.constant == 0:
            return b
        if not b.terms and b.constant == 0:
            return a
        return Sum({Binary(XOR, a.node(), b.node()): 1})

    def _joined(self, total: Sum) -> Sum:
        """Rewrites `x // c * c + x % c` as `x`, and `x - x // c * c` as `x % c`."""
        for atom, c in total.terms.items():
            match atom:
                case Binary("%", inner, Const(n)):
                    pair = self._quotient(self.sum(inner), n)
                    if len(pair.terms) == 1 and not pair.constant:
                        ((other, factor),) = pair.terms.items()
                        if total.terms.get(other) == c * n * factor:
                            rest = {a: f for a, f in total.terms.items() if a not in (atom, other)}
                            return self._joined(Sum(rest, total.constant).plus(self.sum(inner), c))
                    for other, factor in total.terms.items():
                        match other:
                            case Binary("%", higher, Const(m)) if factor == c * n and self.equal(higher, pair.node()):
                                rest = {a: f for a, f in total.terms.items() if a not in (atom, other)}
                                whole = self._remainder(self.sum(inner), n * m)
                                return self._joined(Sum(rest, total.constant).plus(whole, c))
        return total

    def _extreme(self, op: str, a: Sum, b: Sum) -> Sum:
        bounds = self.bounds(a.plus(b, -1))
        if bounds is not None and (bounds[1] <= 0 or bounds[0] >= 0):
            smaller, larger = (a, b) if bounds[1] <= 0 else (b, a)
            return smaller if op == "min" else larger
        return Sum({Binary(op, a.node(), b.node()): 1})

    def _parts(self, total: Sum, divisor: int) -> tuple[Sum, Sum]:
        """`(q, r)` with `total == q * divisor + r`; r has the terms that the divisor does not divide."""
        whole = {a: c // divisor for a, c in total.terms.items() if c % divisor == 0}
        rest = {a: c for a, c in total.terms.items() if c % divisor}
        return Sum(whole, total.constant // divisor), Sum(rest, total.constant % divisor)

    def _coarse(self, rest: Sum, divisor: int) -> tuple[int, Sum, Sum] | None:
        """`rest == g * big + small` with `g` a divisor of `divisor` and `0 <= small < g`."""
        for g in sorted({gcd(c, divisor) for c in rest.terms.values()}, reverse=True):
            if g == 1:
                continue
            big, small = self._parts(rest, g)
            bounds = self.bounds(small)
            if bounds is not None and bounds[0] >= 0 and bounds[1] < g:
                return g, big, small
        return None

    def _quotient(self, total: Sum, divisor: int) -> Sum:
        if divisor == 1:
            return total
        whole, rest = self._parts(total, divisor)
        bounds = self.bounds(rest)
        if bounds is not None and bounds[0] // divisor == bounds[1] // divisor:
            return whole.plus(Sum({}, bounds[0] // divisor))
        coarse = self._coarse(rest, divisor)
        if coarse is not None:
            g, big, _ = coarse
            return whole.plus(self._quotient(big, divisor // g))
        if len(rest.terms) == 1 and not rest.constant:
            ((atom, c),) = rest.terms.items()
            match atom:
                case Binary("//", inner, Const(value)) if c == 1 and value > 0:
                    return whole.plus(self._quotient(self.sum(inner), value * divisor))
                case Binary("%", inner, Const(value)) if c == 1 and value % divisor == 0:
                    higher = self._quotient(self.sum(inner), divisor)
                    return whole.plus(self._remainder(higher, value // divisor))
        return whole.plus(Sum({Binary("//", rest.node(), Const(divisor)): 1}))

    def _remainder(self, total: Sum, divisor: int) -> Sum:
        if divisor == 1:
            return Sum()
        _, rest = self._parts(total, divisor)
        bounds = self.bounds(rest)
        if bounds is not None and bounds[0] // divisor == bounds[1] // divisor:
            return rest.plus(Sum({}, -(bounds[0] // divisor) * divisor))
        coarse = self._coarse(rest, divisor)
        if coarse is not None:
            g, big, small = coarse
            return self._remainder(big, divisor // g).scaled(g).plus(small)
        if len(rest.terms) == 1 and not rest.constant:
            ((atom, c),) = rest.terms.items()
            match atom:
                case Binary("%", inner, Const(value)) if c == 1 and value % divisor == 0:
                    return self._remainder(self.sum(inner), divisor)
        return Sum({Binary("%", rest.node(), Const(divisor)): 1})

    # -- conditions ---------------------------------------------------------------------------------------------------

    def condition(self, node: Bool) -> Bool:
        found = self._bools.get(node)
        if found is None:
            found = self._bools[node] = self._condition(node)
        return found

    def _condition(self, node: Bool) -> Bool:
        match node:
            case Compare(op, left, right):
                return self._compare(op, self.sum(left).plus(self.sum(right), -1))
            case And(parts):
                return all_of(*_distinct(self.condition(p) for p in parts))
            case Or(parts):
                return any_of(*_distinct(self.condition(p) for p in parts))
            case Not(part):
                return ~self.condition(part)
        return node

    def _compare(self, op: str, difference: Sum) -> Bool:
        """`difference op 0` in a canonical form."""
        if op in (">", ">="):
            difference, op = difference.scaled(-1), {">": "<", ">=": "<="}[op]
        if op == "<=":
            difference, op = difference.plus(Sum({}, -1)), "<"
        if (answer := decided(op, self.bounds(difference))) is not None:
            return Truth(answer)
        g = gcd(*difference.terms.values())
        if op == "<" and g > 1:  # g * x + c < 0 says x + floor(c / g) < 0
            difference = Sum({a: c // g for a, c in difference.terms.items()}, difference.constant // g)
        positive = Sum({a: c for a, c in difference.terms.items() if c > 0}, max(0, difference.constant))
        negative = Sum({a: -c for a, c in difference.terms.items() if c < 0}, max(0, -difference.constant))
        if op == "<" and not positive.terms and positive.constant:  # 3 < x reads better as x >= 4
            return Compare(">=", negative.node(), Const(positive.constant + 1))
        if op == "<" and not positive.terms:
            return Compare(">=", negative.node(), Const(1))
        return Compare(op, positive.node(), negative.node())


def exclusive(node: Int) -> tuple[Int, Int] | None:
    """The sides of an exclusive or that is written as a sum, bit by bit: `(a + b) % 2 + (a // 2 + b // 2) % 2 * 2 + …`.

    Both sides have as many bits as the sum has terms. (Slices in shared memory are swizzled like this.)
    """
    terms: list[Int] = []
    while isinstance(node, Binary) and node.op == "+":
        terms.append(node.right)
        node = node.left
    terms.append(node)
    sides: tuple[Int, Int] | None = None
    for number, term in enumerate(reversed(terms)):
        bit = 1 << number
        match term if number == 0 else _half(term, bit):
            case Binary("%", Binary("+", a, b), Const(2)):
                if number == 0:
                    if not (isinstance(a, Binary) and a.op == "%" and isinstance(b, Binary) and b.op == "%"):
                        return None
                    sides = a, b
                elif sides is None or (a, b) != (sides[0] // bit, sides[1] // bit):
                    return None
            case _:
                return None
    limit = Const(1 << len(terms))
    if sides is None or any(not (isinstance(s, Binary) and s.right == limit) for s in sides):
        return None
    return sides


def _half(term: Int, bit: int) -> Int | None:
    return term.left if isinstance(term, Binary) and term.op == "*" and term.right == Const(bit) else None


def _distinct(parts: Iterable[Bool]) -> list[Bool]:
    return list(dict.fromkeys(parts))
