"""The values that a subscript takes where its data lie in ranges: interval arithmetic, with nothing that wraps."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from autosched.ir.value import Arith, Call, Cast, FromIndex, Literal, Read, Select, Unary, Value
from autosched.logic import interval

Limits = tuple[int, int]
"""Least and greatest, both inside."""


def index_values(index: Value, data: Mapping[str, Limits], axes: Mapping[str, Limits]) -> Limits | None:
    """The least and the greatest value of the subscript, or ones beyond them; None where a part of it may wrap, or is
    none that this knows. `data` holds tensors, `axes` the axes' ranges.

    >>> from autosched.ir import parse
    >>> text = "def f(T: f32[9], I: s32[4], Y: f32[4]):\\n    for i in range(4):\\n        Y[i] = T[I[i] * I[i]]"
    >>> index_values(parse(text).stages[0].assign.value.index[0], {"I": (0, 2)}, {"i": (0, 3)})
    (0, 4)
    """
    found = _values(index, data, axes)
    least, most = index.dtype.limits
    return found if found is None or (least <= found[0] and found[1] <= most) else None


def _values(value: Value, data: Mapping[str, Limits], axes: Mapping[str, Limits]) -> Limits | None:
    if not value.dtype.is_integer:
        return None
    match value:
        case Literal(number):
            return int(number), int(number)
        case FromIndex(index):
            return interval(index, dict(axes))
        case Read(tensor):
            return data.get(tensor)
        case Cast(operand):
            return index_values(operand, data, axes)
        case Select(_, then, other):
            return _both(index_values(then, data, axes), index_values(other, data, axes))
        case Unary("-", operand):
            inner = index_values(operand, data, axes)
            return None if inner is None else (-inner[1], -inner[0])
        case Call("abs", (operand,)):
            inner = index_values(operand, data, axes)
            return None if inner is None else (max(0, inner[0], -inner[1]), max(-inner[0], inner[1]))
        case Arith(op, left, right):
            one, two = index_values(left, data, axes), index_values(right, data, axes)
            if one is None or two is None:
                return None
            return _square(one) if op == "*" and left == right else _arith(op, one, two)
    return None


def _both(one: Limits | None, two: Limits | None) -> Limits | None:
    return None if one is None or two is None else (min(one[0], two[0]), max(one[1], two[1]))


def _square(one: Limits) -> Limits:
    ends = [end * end for end in one]
    return (0 if one[0] <= 0 <= one[1] else min(ends)), max(ends)


def _arith(op: str, one: Limits, two: Limits) -> Limits | None:
    match op:
        case "+":
            return one[0] + two[0], one[1] + two[1]
        case "-":
            return one[0] - two[1], one[1] - two[0]
        case "min" | "max":
            choose = min if op == "min" else max
            return choose(one[0], two[0]), choose(one[1], two[1])
        case "*":
            ends = [a * b for a, b in product(one, two)]
            return min(ends), max(ends)
        case "//" if two[0] > 0:  # rounds down, as % does
            ends = [a // b for a, b in product(one, two)]
            return min(ends), max(ends)
        case "%" if two[0] > 0:
            return one if one[0] >= 0 and one[1] < two[0] else (0, two[1] - 1)
        case "&" if one[0] >= 0 and two[0] >= 0:
            return 0, min(one[1], two[1])
    return None
