"""Integer expressions in one form: computed in 64 bits wherever nothing wraps, clamps written out.

A solver then sees one product for `s16(a) * s16(b)` and `s64(a) * s64(b)`, and need not multiply twice.
"""

from __future__ import annotations

from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Cast, Literal, Value, converted, map_value
from autosched.tensorize.body.intervals import exact_range

_WIDE = DTYPES["s64"]
_EXACT = frozenset(["+", "-", "*", "min", "max"])


def widened(value: Value) -> Value:
    """An equal value in which additions, products, minima and maxima that cannot leave their dtype are of s64."""
    return map_value(value, _node)


def _node(node: Value) -> Value:
    match node:
        case Arith(op, left, right, dtype) if op in _EXACT and dtype.is_integer and dtype != _WIDE:
            wide = Arith(op, _wide(left), _wide(right), _WIDE)
            if _fits(left) and _fits(right) and exact_range(wide).within(dtype.limits):
                return Cast(wide, dtype)
        case Cast(operand, dtype, True) if operand.dtype == _WIDE and dtype.is_integer and dtype.bits < _WIDE.bits:
            low, high = (Literal(n, _WIDE) for n in dtype.limits)
            return Cast(Arith("min", Arith("max", operand, low, _WIDE), high, _WIDE), dtype)
        case Cast(operand, dtype, True) if (
            operand.dtype.is_integer and dtype.bits < operand.dtype.bits and _fits(operand)
        ):
            return _node(Cast(_wide(operand), dtype, True))
        case Cast(_, dtype, False) if dtype == _WIDE:
            return _wide(node)
    return node


def _fits(value: Value) -> bool:
    return exact_range(value).within(_WIDE.limits)


def _wide(value: Value) -> Value:
    """The same number as s64; a conversion that changes no number on the way is left out."""
    match value:
        case Literal(number, _):
            return Literal(number, _WIDE)
        case Cast(operand, dtype, _) if operand.dtype.is_integer and exact_range(operand).within(dtype.limits):
            return _wide(operand)
    return converted(value, _WIDE)
