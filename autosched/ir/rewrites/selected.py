"""Elements that data address within a small range, as choices among the elements that may be meant.

    B[4 * g + s32(E[i, g]), j]            B[4 * g, j] if E[i, g] & 3 == 0 else B[4 * g + 1, j] if … else B[4 * g + 3, j]
    where 0 <= E <= 3

So a product of 2:4 sparse data reads what an instruction that selects reads. A subscript is worked out for each number
as a formula of the loops, so no part of it may wrap in its own type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from autosched.ir.dtypes import DType
from autosched.ir.value import (
    Arith,
    Cast,
    Comparison,
    FromIndex,
    Index,
    Literal,
    Read,
    Select,
    Value,
    is_value,
    map_value,
)
from autosched.ir.value import reads as reads_of
from autosched.logic import Const, Int, free_vars, interval

MOST = 8
"""Elements among which data choose."""
Bounds = Mapping[str, tuple[int, int]]
Ranges = Callable[[Read], tuple[int, int] | None]
"""What is known of an element's values, ends included."""


def with_choices(value: Value, known: Ranges, axes: Bounds) -> Value:
    """The value with choices in the places of such elements; those that more than one number addresses, or a number of
    more values, stay. `axes`: the least and the greatest value of each loop's variable."""

    def choose(v: Value) -> Value:
        return (_choice(v, known, axes) or v) if isinstance(v, Read) else v

    return map_value(value, choose)


def _choice(read: Read, known: Ranges, axes: Bounds) -> Value | None:
    moving = [d for d, part in enumerate(read.index) if is_value(part) and reads_of(part)]
    if len(moving) != 1:
        return None
    (d,) = moving
    part = read.index[d]
    assert is_value(part)
    selector = _selector(part)
    if selector is None:
        return None
    number, mask = _masked(selector, known)
    if number is None:
        return None

    def at(n: int) -> Read | None:
        place = _index(part, selector, n, axes)
        index: tuple[Index, ...] = tuple(place if place is not None and k == d else p for k, p in enumerate(read.index))
        return None if place is None else replace(read, index=index)

    found: Value | None = at(mask)
    for n in reversed(range(mask)):
        then = at(n)
        if then is None or found is None:
            return None
        found = Select(Comparison("==", number, Literal(n, number.dtype)), then, found, read.dtype)
    return found


def _selector(part: Value) -> Value | None:
    """The one number among the parts of a subscript that data say, conversions left out."""
    match part:
        case Cast(operand, dtype, False) if dtype.is_integer and operand.dtype.is_integer:
            return _selector(operand)
        case Arith("+" | "-" | "*", left, right):
            sides = [s for s in (left, right) if reads_of(s)]
            return _selector(sides[0]) if len(sides) == 1 else None
        case Read() | Arith("&"):
            return part if part.dtype.is_integer else None
    return None


def _masked(selector: Value, known: Ranges) -> tuple[Value | None, int]:
    """The number as the low bits of an element, and the greatest value of these."""
    match selector:
        case Arith("&", Read() as element, Literal(mask)) | Arith("&", Literal(mask), Read() as element):
            bits = int(mask)
        case Read() as element:
            low, high = known(element) or (-1, -1)
            bits = high if low >= 0 else 0
        case _:
            return None, 0
    if not 0 < bits < MOST or bits & (bits + 1):
        return None, 0
    return Arith("&", element, Literal(bits, element.dtype), element.dtype), bits


def _index(part: Value, selector: Value, number: int, axes: Bounds) -> Int | None:
    """The subscript where the selector is a number; None where it is no formula of the loops then, or wraps."""
    if part == selector:
        return Const(number)
    found: Int | None = None
    match part:
        case FromIndex(index):
            found = index
        case Literal(known):
            found = Const(int(known))
        case Cast(operand, dtype, False) if dtype.is_integer and operand.dtype.is_integer:
            found = _index(operand, selector, number, axes)
        case Arith("+" | "-" | "*" as op, left, right):
            a, b = _index(left, selector, number, axes), _index(right, selector, number, axes)
            if a is not None and b is not None:
                found = a + b if op == "+" else a - b if op == "-" else a * b
    return found if found is not None and _holds(part.dtype, found, axes) else None


def _holds(dtype: DType, number: Int, axes: Bounds) -> bool:
    """Whether a type has all that a formula may be."""
    if not free_vars(number) <= axes.keys():
        return False
    (low, high), (least, most) = interval(number, axes), dtype.limits
    return least <= low and high <= most
