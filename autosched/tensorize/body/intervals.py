"""Intervals of integer values: what bounds a term, and so what a sum of K terms cannot exceed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Logical, Select, Unary, Value, walk


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive integer bounds."""

    low: int
    high: int

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def within(self, limits: tuple[int, int]) -> bool:
        return limits[0] <= self.low and self.high <= limits[1]

    def clamped(self, limits: tuple[int, int]) -> Range:
        low, high = limits
        return Range(min(max(self.low, low), high), min(max(self.high, low), high))

    def __str__(self) -> str:
        return f"[{self.low}, {self.high}]"


def exact_range(value: Value, leaves: Mapping[Value, Range] | None = None) -> Range:
    """Sound bounds of an integer `value`; a result that may wrap has its dtype's whole range.

    `leaves` narrows reads and scalars below their dtype's range.
    """
    dtype = value.dtype
    whole = Range(0, 1) if dtype.kind == "bool" else Range(*dtype.limits)

    def sub(v: Value) -> Range:
        return exact_range(v, leaves)

    def fit(low: int, high: int) -> Range:
        found = Range(low, high)
        return found if found.within((whole.low, whole.high)) else whole

    if leaves and value in leaves:
        return leaves[value]
    match value:
        case Literal(number, _) if isinstance(number, int):
            return fit(number, number)
        case Unary("-", operand, _):
            r = sub(operand)
            return fit(-r.high, -r.low)
        case Arith("+", a, b, _):
            x, y = sub(a), sub(b)  # once each: the chain of a long sum is deep
            return fit(x.low + y.low, x.high + y.high)
        case Arith("-", a, b, _):
            x, y = sub(a), sub(b)
            return fit(x.low - y.high, x.high - y.low)
        case Arith("*", a, b, _):
            x, y = sub(a), sub(b)
            corners = [p * q for p in (x.low, x.high) for q in (y.low, y.high)]
            return fit(min(corners), max(corners))
        case Arith("min", a, b, _):
            x, y = sub(a), sub(b)
            return Range(min(x.low, y.low), min(x.high, y.high))
        case Arith("max", a, b, _):
            x, y = sub(a), sub(b)
            return Range(max(x.low, y.low), max(x.high, y.high))
        case Arith(">>", a, Literal(number, _), _) if isinstance(number, int) and 0 <= number < dtype.bits:
            r = sub(a)
            return Range(r.low >> number, r.high >> number)
        case Call("abs", (a,), _):
            r = sub(a)
            return fit(0 if r.low <= 0 <= r.high else min(abs(r.low), abs(r.high)), max(abs(r.low), abs(r.high)))
        case Cast(operand, _, saturate) if operand.dtype.is_integer:
            r = sub(operand)
            return r.clamped((whole.low, whole.high)) if saturate else fit(r.low, r.high)
        case Select(_, a, b, _):
            x, y = sub(a), sub(b)
            return Range(min(x.low, y.low), max(x.high, y.high))
        case Comparison() | Logical():
            return Range(0, 1)
    return whole


def unwrapped_range(value: Value) -> Range | None:
    """The range of a value that no step of it can wrap; None where one can."""
    match value:
        case Unary("-", operand, _):
            inner = unwrapped_range(operand)
            found = inner and Range(-inner.high, -inner.low)
        case Arith("+" | "-" | "*" as op, left, right, _):
            a, b = unwrapped_range(left), unwrapped_range(right)
            if a is None or b is None:
                return None
            if op == "*":
                corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
                found = Range(min(corners), max(corners))
            else:
                found = a + b if op == "+" else Range(a.low - b.high, a.high - b.low)
        case Arith("<<", left, Literal(int(places), _), dtype) if 0 <= places < dtype.bits:
            inner = unwrapped_range(left)
            found = inner and Range(inner.low << places, inner.high << places)
        case Cast(operand, _, False) if operand.dtype.is_integer:
            found = unwrapped_range(operand)
        case Unary("~") | Arith("<<"):
            return None
        case _:
            return exact_range(value) if value.dtype.is_integer else None
    return found if found is not None and found.within(value.dtype.limits) else None


def loses(value: Value) -> tuple[bool, int]:
    """What a value loses on the way: whether integers may wrap, and of floats the bits short of f64's in the narrowest
    step."""
    steps = [v for v in walk(value) if isinstance(v, Arith | Cast | Unary)]
    wraps = any(v.dtype.is_integer and unwrapped_range(v) is None for v in steps)
    return wraps, max((52 - v.dtype.mantissa for v in steps if v.dtype.is_float), default=0)
