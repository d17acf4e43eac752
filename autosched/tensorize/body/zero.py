"""Which values are zero whatever their inputs are."""

from __future__ import annotations

from autosched.ir.value import Arith, Call, Cast, Literal, Unary, Value


def is_zero_by_structure(value: Value) -> bool:
    """Whether `value` is zero by structure, whatever its (finite) inputs are."""
    match value:
        case Literal(number, _):
            return number == 0
        case Cast(operand, _, _) | Unary("-", operand, _) | Call("abs", (operand,), _):
            return is_zero_by_structure(operand)
        case Arith("+" | "-", left, right, _):
            return is_zero_by_structure(left) and is_zero_by_structure(right)
        case Arith("*", left, right, _):
            return is_zero_by_structure(left) or is_zero_by_structure(right)
    return False
