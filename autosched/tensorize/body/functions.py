"""Functions by what they are made of, over the reals: for instructions that state a bound on their error, not bits.

    rsqrt(x)    is    1 / sqrt(x)          sigmoid(x)    is    1 / (1 + exp(-x))
"""

from __future__ import annotations

from autosched.ir.value import (
    Arith,
    Call,
    Literal,
    Read,
    Unary,
    Value,
    children,
    map_value,
    reads,
    with_children,
)
from autosched.tensorize.body.canonical import canonical


def same_function(a: Value, b: Value) -> bool:
    """Whether two values are one function once such functions are written out. Conversions stay as they are: what they
    round or clamp is not less than the bound."""
    return a.dtype == b.dtype and canonical(_written_out(a)) == canonical(_written_out(b))


def _written_out(value: Value) -> Value:
    def visit(v: Value) -> Value:
        match v:
            case Call("rsqrt", (x,), dtype):
                return Arith("/", Literal(1.0, dtype), Call("sqrt", (x,), dtype), dtype)
            case Call("sigmoid", (x,), dtype):
                one = Literal(1.0, dtype)
                below = Arith("+", one, Call("exp", (Unary("-", x, dtype),), dtype), dtype)
                return Arith("/", one, below, dtype)
        return v

    return map_value(value, visit)


def argument_of(value: Value, function: Value, operand: Read) -> tuple[Value, Value | None] | None:
    """The argument x for which `value` is `function` of it (over the reals), and what that is multiplied with: of a
    quotient that is no reciprocal. None where it is another function.

    1 / sqrt(a + b) of rsqrt        (a + b, None)
    a / b of 1 / x                  (b, a)
    """
    pattern, mine = _written_out(function), _written_out(value)
    if (found := _unified(pattern, mine, operand)) is not None:
        return found, None
    match pattern, mine:
        case Arith("/", Literal(1.0), below), Arith("/", above, other) if not isinstance(above, Literal):
            found = _unified(below, other, operand)
            return None if found is None else (found, above)
    return None


def _unified(pattern: Value, value: Value, operand: Read) -> Value | None:
    """What stands in `value` where `pattern` has its operand; None where they differ elsewhere."""
    if pattern == operand:
        return value if value.dtype == operand.dtype else None
    if isinstance(pattern, Literal) or type(pattern) is not type(value) or pattern.dtype != value.dtype:
        return None
    ours, theirs = children(pattern), children(value)
    same = len(ours) == len(theirs) and with_children(pattern, list(theirs)) == value
    found = [(p, v) for p, v in zip(ours, theirs, strict=False) if any(r == operand for r in reads(p))]
    fixed = [(p, v) for p, v in zip(ours, theirs, strict=False) if not any(r == operand for r in reads(p))]
    if not same or len(found) != 1 or any(p != v for p, v in fixed):
        return None
    return _unified(*found[0], operand)
