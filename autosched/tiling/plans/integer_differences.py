"""Differences of narrow integers as floats, without a conversion: the difference of two floats that have them in the
low bits of their fractions.

    f32(w) - f32(z)  ==  bits_f32(u32(w) | 0x4b000000) - bits_f32(u32(z) | 0x4b000000)

The bits are those of 2²³ + w and 2²³ + z, whose difference is an integer below 2²³: both sides are exact and the same,
bit for bit. One logic operation takes the place of the mask and the conversion of a packed weight, and it has more
ports. Signed integers are added to the bits of 1.5 · 2²³, so that negative ones stay in the same binade.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Arith, Call, Cast, Literal, Value, map_value

F32 = DTYPES["f32"]
MOST_BITS = 16
UNSIGNED, SIGNED = 2.0**23, 1.5 * 2.0**23
"""Floats whose unit in the last place is 1."""
UNSIGNED_BITS, SIGNED_BITS = 0x4B000000, 0x4B400000


def integer_differences(value: Value) -> Value:
    """The value with each difference of narrow integers, one of which may be a literal, taken in such floats."""
    return map_value(value, on_value=_difference)


def _difference(value: Value) -> Value:
    if not isinstance(value, Arith) or value.op != "-" or value.dtype != F32:
        return value
    narrow = [n for n in (_narrow(value.left), _narrow(value.right)) if n is not None]
    plain = sum(_is_integer(v) for v in (value.left, value.right))
    if not narrow or len(narrow) + plain < 2:
        return value
    signed = any(n.dtype.kind == "int" for n in narrow)
    return Arith("-", _lifted(value.left, signed), _lifted(value.right, signed), F32)


def _narrow(value: Value) -> Value | None:
    """The integer that a value is, converted to f32."""
    match value:
        case Cast(operand, dtype, False) if dtype == F32 and operand.dtype.is_integer:
            return operand if operand.dtype.bits <= MOST_BITS else None
    return None


def _is_integer(value: Value) -> bool:
    """Whether it is a literal that such a difference may have."""
    if not isinstance(value, Literal):
        return False
    number = float(value.value)
    minus_zero = number == 0 and copysign(1.0, number) < 0  # an integer has none
    return abs(number) < 2.0**MOST_BITS and number.is_integer() and not minus_zero


def _lifted(value: Value, signed: bool) -> Value:
    """The float with the integer in the low bits of its fraction."""
    base = SIGNED if signed else UNSIGNED
    integer = _narrow(value)
    if integer is None:
        assert isinstance(value, Literal)
        return Literal(base + float(value.value), F32)
    word: DType = DTYPES["s32" if signed else "u32"]
    bits = SIGNED_BITS if signed else UNSIGNED_BITS
    placed = Arith("+" if signed else "|", Cast(integer, word), Literal(bits, word), word)
    return Call("bits_f32", (placed,), F32)


def map_differences(value: Value, on_pair: Callable[[Value, Value], tuple[Value, Value] | None]) -> Value:
    """The value with the two sides of each such difference replaced by what `on_pair` makes of them, unless None."""

    def visit(node: Value) -> Value:
        match node:
            case Arith("-", left, right, dtype) if dtype == F32 and _both(left, right):
                new = on_pair(left, right)
                return node if new is None else Arith("-", *new, dtype)
        return node

    return map_value(value, on_value=visit)


def _both(left: Value, right: Value) -> bool:
    """Whether both are integers in floats, by one base."""
    one, other = lifted(left), lifted(right)
    base = one or other
    if base is None:
        return False

    def same(found: tuple[Value, float] | None, value: Value) -> bool:
        if found is not None:
            return found[1] == base[1] and found[0].dtype.bits <= MOST_BITS
        return isinstance(value, Literal) and _is_integer(Literal(float(value.value) - base[1], F32))

    return same(one, left) and same(other, right)


def lifted(value: Value) -> tuple[Value, float] | None:
    """The integer in the low bits of a float's fraction, and the float in which they would be 0."""
    match value:
        case Call("bits_f32", (Arith(op, Cast(integer, _, False), Literal(bits), _),), _):
            if (op, bits) == ("|", UNSIGNED_BITS) and integer.dtype.kind == "uint":
                return integer, UNSIGNED
            if (op, bits) == ("+", SIGNED_BITS) and integer.dtype.is_integer:
                return integer, SIGNED
    return None
