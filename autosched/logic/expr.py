"""The expression tree: frozen nodes, built with Python's operators, simplified while they are built.

`Int` nodes denote integers, `Bool` nodes truth values. Division and remainder floor, as in Python.

>>> i, n = Var("i"), Var("n")
>>> print((i * 4 + 3) // 2 + 0)
(i * 4 + 3) // 2
>>> print(all_of(0 <= i, i < n))
i >= 0 and i < n
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from autosched.logic.remember import Remembering, remembers_hash

IntLike: TypeAlias = Union["Int", int]

_PRECEDENCE = {"+": 4, "-": 4, "*": 5, "//": 5, "%": 5}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_FOLD = ARITHMETIC | {"min": min, "max": max}
COMPARE = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class Int(Remembering):
    """An integer-valued expression. Equality of nodes is `same`; `==` between them builds no formula, use `eq`."""

    __slots__ = ()

    def __add__(self, other: IntLike) -> Int:
        return binary("+", self, other)

    def __radd__(self, other: IntLike) -> Int:
        return binary("+", other, self)

    def __sub__(self, other: IntLike) -> Int:
        return binary("-", self, other)

    def __rsub__(self, other: IntLike) -> Int:
        return binary("-", other, self)

    def __mul__(self, other: IntLike) -> Int:
        return binary("*", self, other)

    def __rmul__(self, other: IntLike) -> Int:
        return binary("*", other, self)

    def __floordiv__(self, other: IntLike) -> Int:
        return binary("//", self, other)

    def __rfloordiv__(self, other: IntLike) -> Int:
        return binary("//", other, self)

    def __mod__(self, other: IntLike) -> Int:
        return binary("%", self, other)

    def __rmod__(self, other: IntLike) -> Int:
        return binary("%", other, self)

    def __neg__(self) -> Int:
        return binary("-", 0, self)

    def __lt__(self, other: IntLike) -> Bool:
        return compare("<", self, other)

    def __le__(self, other: IntLike) -> Bool:
        return compare("<=", self, other)

    def __gt__(self, other: IntLike) -> Bool:
        return compare(">", self, other)

    def __ge__(self, other: IntLike) -> Bool:
        return compare(">=", self, other)

    def eq(self, other: IntLike) -> Bool:
        """The formula `self == other` (`==` itself compares nodes, so that they can be keys)."""
        return compare("==", self, other)

    def ne(self, other: IntLike) -> Bool:
        """The formula `self != other`."""
        return compare("!=", self, other)

    def is_in(self, values: Iterable[int]) -> Bool:
        """The formula `self in values`."""
        return any_of(*(self.eq(v) for v in values))


@dataclass(frozen=True, slots=True)
class Const(Int):
    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Var(Int):
    name: str

    def __str__(self) -> str:
        return self.name


@remembers_hash
@dataclass(frozen=True, slots=True)
class Binary(Int):
    """`op` is one of `+ - * // % min max`."""

    op: str
    left: Int
    right: Int

    def __str__(self) -> str:
        if self.op in ("min", "max"):
            return f"{self.op}({self.left}, {self.right})"
        level = _PRECEDENCE[self.op]
        return f"{_wrap(self.left, level)} {self.op} {_wrap(self.right, level + 1)}"


@remembers_hash
@dataclass(frozen=True, slots=True)
class Where(Int):
    """`then` where `condition` holds, else `other`."""

    condition: Bool
    then: Int
    other: Int

    def __str__(self) -> str:
        return f"({self.then} if {self.condition} else {self.other})"


class Bool(Remembering):
    """A truth-valued expression; `&`, `|`, `~` and `implies` build larger ones."""

    __slots__ = ()

    def __and__(self, other: Bool) -> Bool:
        return all_of(self, other)

    def __or__(self, other: Bool) -> Bool:
        return any_of(self, other)

    def __invert__(self) -> Bool:
        return negate(self)

    def implies(self, other: Bool) -> Bool:
        return any_of(negate(self), other)


@dataclass(frozen=True, slots=True)
class Truth(Bool):
    value: bool

    def __str__(self) -> str:
        return str(self.value)


@remembers_hash
@dataclass(frozen=True, slots=True)
class Compare(Bool):
    op: str
    left: Int
    right: Int

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@remembers_hash
@dataclass(frozen=True, slots=True)
class And(Bool):
    parts: tuple[Bool, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


@remembers_hash
@dataclass(frozen=True, slots=True)
class Or(Bool):
    parts: tuple[Bool, ...]

    def __str__(self) -> str:
        return " or ".join(f"({p})" if isinstance(p, And) else str(p) for p in self.parts)


@remembers_hash
@dataclass(frozen=True, slots=True)
class Not(Bool):
    part: Bool

    def __str__(self) -> str:
        return f"not ({self.part})"


Expr: TypeAlias = Int | Bool
TRUE = Truth(True)
FALSE = Truth(False)


def _wrap(node: Int, level: int) -> str:
    if isinstance(node, Binary) and node.op in _PRECEDENCE and _PRECEDENCE[node.op] < level:
        return f"({node})"
    if isinstance(node, Const) and node.value < 0:
        return f"({node})"
    return str(node)


def to_int(value: IntLike) -> Int:
    """An `Int` node for a node or a Python int."""
    return value if isinstance(value, Int) else _constant(int(value))


const = to_int
_SMALL = tuple(Const(n) for n in range(1025))
"""Most constants of most trees are one of few: trees share them."""


def _constant(value: int) -> Const:
    return _SMALL[value] if 0 <= value < len(_SMALL) else Const(value)


def binary(op: str, left: IntLike, right: IntLike) -> Int:
    """`left op right`, folded where both are constants and freed of neutral elements."""
    a = left if isinstance(left, Int) else _constant(int(left))
    b = right if isinstance(right, Int) else _constant(int(right))
    av = a.value if isinstance(a, Const) else None
    bv = b.value if isinstance(b, Const) else None
    if av is not None and bv is not None and not (bv == 0 and op in ("//", "%")):
        return _constant(_FOLD[op](av, bv))
    if op == "+":
        if av == 0:
            return b
        if bv == 0:
            return a
        if bv is not None:
            if isinstance(a, Binary) and isinstance(a.right, Const) and a.op in "+-":
                bv += a.right.value if a.op == "+" else -a.right.value
                return _plus(a.left, bv)
            return _plus(a, bv)
    elif op == "-":
        if bv is not None:
            return binary("+", a, -bv)
        if a == b:
            return Const(0)
    elif op == "*":
        if av == 0 or bv == 0:
            return Const(0)
        if av == 1:
            return b
        if bv == 1:
            return a
        if bv is not None and isinstance(a, Binary) and a.op == "*" and isinstance(a.right, Const):
            return binary("*", a.left, a.right.value * bv)
    elif op == "//":
        if bv == 1:
            return a
        if av == 0:
            return a
    elif op == "%":
        if bv == 1 or av == 0:
            return Const(0)
    elif a == b:  # min, max
        return a
    elif bv is not None and isinstance(a, Binary) and a.op == op and isinstance(a.right, Const):
        return Binary(op, a.left, Const(_FOLD[op](a.right.value, bv)))
    return Binary(op, a, b)


def _plus(a: Int, offset: int) -> Int:
    if offset == 0:
        return a
    return Binary("+", a, _constant(offset)) if offset > 0 else Binary("-", a, _constant(-offset))


def minimum(*values: IntLike) -> Int:
    """The least of `values`."""
    return _chain("min", values)


def maximum(*values: IntLike) -> Int:
    """The greatest of `values`."""
    return _chain("max", values)


def _chain(op: str, values: tuple[IntLike, ...]) -> Int:
    result = to_int(values[0])
    for value in values[1:]:
        result = binary(op, result, value)
    return result


def ceil_div(a: IntLike, b: IntLike) -> Int:
    """`a / b` rounded up; `b` positive."""
    if isinstance(a, int) and isinstance(b, int):
        return Const(-(-a // b))
    if isinstance(b, int) and b == 1:
        return to_int(a)
    return (to_int(a) + to_int(b) - 1) // b


def where(condition: Bool, then: IntLike, other: IntLike) -> Int:
    """`then` where `condition` holds, else `other`."""
    if isinstance(condition, Truth):
        return to_int(then if condition.value else other)
    a, b = to_int(then), to_int(other)
    return a if a == b else Where(condition, a, b)


def compare(op: str, left: IntLike, right: IntLike) -> Bool:
    """The comparison, decided where both sides are constants or the same node."""
    a, b = to_int(left), to_int(right)
    if isinstance(a, Const) and isinstance(b, Const):
        return Truth(COMPARE[op](a.value, b.value))
    if a == b:
        return Truth(op in ("<=", ">=", "=="))
    return Compare(op, a, b)


def all_of(*parts: Bool) -> Bool:
    """Conjunction; empty is true."""
    flat = [q for p in parts for q in (p.parts if isinstance(p, And) else (p,)) if q != TRUE]
    if FALSE in flat:
        return FALSE
    unique = tuple(dict.fromkeys(flat))
    return TRUE if not unique else unique[0] if len(unique) == 1 else And(unique)


def conjuncts(condition: Bool) -> tuple[Bool, ...]:
    """The parts of a conjunction; none for TRUE. To be at or above the greatest of several, or at or below the least of
    them, is to be so of each: `max(a, b) <= x` has two parts."""
    if condition == TRUE:
        return ()
    parts = condition.parts if isinstance(condition, And) else (condition,)
    if not any(isinstance(part, Compare) and _of_each(part) is not None for part in parts):
        return parts
    found = (q for part in parts for q in _of_each_one(part))
    return tuple(dict.fromkeys(q for q in found if q != TRUE))


def _of_each_one(part: Bool) -> tuple[Bool, ...]:
    """A condition as those on each of several bounds."""
    both = _of_each(part) if isinstance(part, Compare) else None
    return (part,) if both is None else tuple(q for one in both for q in _of_each_one(one))


def _of_each(part: Compare) -> tuple[Bool, Bool] | None:
    """A comparison with the greatest or the least of two as one with each; None where it is of another kind."""
    below = part.op in ("<", "<=")
    if not below and part.op not in (">", ">="):
        return None
    for node, op in ((part.left, "max" if below else "min"), (part.right, "min" if below else "max")):
        if isinstance(node, Binary) and node.op == op:
            if node is part.left:
                return compare(part.op, node.left, part.right), compare(part.op, node.right, part.right)
            return compare(part.op, part.left, node.left), compare(part.op, part.left, node.right)
    return None


def any_of(*parts: Bool) -> Bool:
    """Disjunction; empty is false."""
    flat = [q for p in parts for q in (p.parts if isinstance(p, Or) else (p,)) if q != FALSE]
    if TRUE in flat:
        return TRUE
    unique = tuple(dict.fromkeys(flat))
    return FALSE if not unique else unique[0] if len(unique) == 1 else Or(unique)


OPPOSITE = {"<": ">=", "<=": ">", "==": "!=", "!=": "==", ">": "<=", ">=": "<"}


def negate(part: Bool) -> Bool:
    """Logical not, pushed through comparisons."""
    if isinstance(part, Truth):
        return Truth(not part.value)
    if isinstance(part, Not):
        return part.part
    if isinstance(part, Compare):
        return Compare(OPPOSITE[part.op], part.left, part.right)
    return Not(part)
