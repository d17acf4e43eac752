"""What is left of an expression where some of its names are known: the rest, over a few values of the known part.

Two sets of known values that agree in these few have the same rest, and so the same completions. Terms of sums and
products are put together whatever their order: of `(a + x) + b`, with a and b known, `a + b` is left to know.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import reduce

from autosched.logic.expr import (
    And,
    Binary,
    Bool,
    Compare,
    Const,
    Expr,
    Int,
    Not,
    Or,
    Truth,
    Var,
    Where,
    all_of,
    any_of,
    binary,
    compare,
    negate,
    where,
)
from autosched.logic.walk import free_vars


class Residual:
    """`known` names have values. `defined` collects what is left to know: new names, each with its expression over
    known names; equal expressions share a name. `fresh()` makes names that nobody else uses.

    >>> rest = Residual({"a", "b"}, iter(["s", "t"]).__next__)
    >>> print(rest.integer((Var("a") + Var("x")) + Var("b")), {n: str(e) for n, e in rest.defined.items()})
    s + x {'s': 'a + b'}
    """

    def __init__(self, known: Set[str], fresh: Callable[[], str]) -> None:
        self.known = known
        self.defined: dict[str, Int] = {}
        self._fresh = fresh
        self._names: dict[Int, str] = {}

    def integer(self, node: Int) -> Int:
        """The rest of an integer."""
        if free_vars(node) <= self.known:
            return self._value(node)
        match node:
            case Binary("+" | "-", _, _):
                return self._sum(node)
            case Binary("*" | "min" | "max" as op, _, _):
                return self._chain(op, _flat(op, node))
            case Binary("%", left, Const(modulus)) if modulus > 0:
                return binary("%", self._sum(left, modulus), modulus)
            case Binary(op, left, right):
                return binary(op, self.integer(left), self.integer(right))
            case Where(condition, then, other):
                return where(self.truth(condition), self.integer(then), self.integer(other))
        return node

    def truth(self, node: Bool) -> Bool:
        """The rest of a truth value."""
        if isinstance(node, Truth):
            return node
        if free_vars(node) <= self.known:
            return self._value(where(node, 1, 0)).eq(1)
        match node:
            case Compare(op, left, right):
                return compare(op, self.integer(left), self.integer(right))
            case And(parts):
                return all_of(*self._parts(parts, all_of))
            case Or(parts):
                return any_of(*self._parts(parts, any_of))
            case Not(part):
                return negate(self.truth(part))
        return node

    def _value(self, node: Int) -> Int:
        """A known integer: a name for it, where it is neither a constant nor has one."""
        if isinstance(node, Const | Var):
            return node
        if node not in self._names:
            self._names[node] = self._fresh()
            self.defined[self._names[node]] = node
        return Var(self._names[node])

    def _sum(self, node: Int, modulus: int | None = None) -> Int:
        """The known terms of a sum as one value (its remainder where nothing else counts), and the others."""
        known: Int = Const(0)
        unknown: list[tuple[str, Int]] = []
        for sign, term in _terms(node):
            if free_vars(term) <= self.known:
                known = binary(sign, known, term)
            else:
                unknown.append((sign, self.integer(term)))
        value = self._value(known if modulus is None else binary("%", known, modulus))
        return reduce(lambda total, part: binary(part[0], total, part[1]), unknown, value)

    def _chain(self, op: str, parts: list[Int]) -> Int:
        known = [p for p in parts if free_vars(p) <= self.known]
        rest = [self.integer(p) for p in parts if not free_vars(p) <= self.known]
        value = [self._value(reduce(lambda a, b: binary(op, a, b), known))] if known else []
        return reduce(lambda a, b: binary(op, a, b), [*value, *rest])

    def _parts(self, parts: tuple[Bool, ...], join: Callable[..., Bool]) -> list[Bool]:
        known = [p for p in parts if free_vars(p) <= self.known]
        return [self.truth(join(*known)), *(self.truth(p) for p in parts if p not in known)]


def _terms(node: Expr, sign: str = "+") -> list[tuple[str, Int]]:
    """The signed terms that a sum adds up."""
    match node:
        case Binary("+", left, right):
            return [*_terms(left, sign), *_terms(right, sign)]
        case Binary("-", left, right):
            return [*_terms(left, sign), *_terms(right, "-" if sign == "+" else "+")]
    assert isinstance(node, Int)
    return [(sign, node)]


def _flat(op: str, node: Int) -> list[Int]:
    match node:
        case Binary(other, left, right) if other == op:
            return [*_flat(op, left), *_flat(op, right)]
    return [node]
