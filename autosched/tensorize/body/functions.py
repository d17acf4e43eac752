"""Functions by what they are made of, over the reals: for instructions that state a bound on their error, not bits.

    rsqrt(x)    is    1 / sqrt(x)          sigmoid(x)    is    1 / (1 + exp(-x))
"""

from __future__ import annotations

from autosched.ir.value import Arith, Call, Literal, Unary, Value, map_value
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
