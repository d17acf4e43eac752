"""Quotients by what a whole row has in common: its reciprocal once, then a product and a correction an element.

    c = 2^64 if |s| < 2^-64 else 1;  t = s * c;  r = 1 / t          once
    z = x * c;  q = z * r;  e = fma(-q, t, z);  y = fma(e, r, q)    four instructions where a division takes ten

With fused operations y is x / s rounded to nearest, as the division is (P. Markstein, IBM Journal of Research and
Development 34, 1990), unless something on the way overflows or underflows: without c, r would for the smallest s. What
is left is the last bit where |z| < 2^-100 (e would need smaller numbers than there are), and a zero's sign. Where e is
no finite number (s is zero or infinite, or q is) q is the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Call, Comparison, Literal, Select, Unary, Value, map_value

SMALL, SCALE = 2.0**-64, 2.0**64
Uniform = Callable[[Value], bool]
Hold = Callable[[str, Value], Value]
"""Declares a register for a value, assigns it, and reads it."""


def with_reciprocals(value: Value, common: Uniform, once: Hold, each: Hold) -> Value:
    """The value with quotients of f32 by what is `common` to a row taken by its reciprocal, which `once` holds; `each`
    holds what an element has on the way."""

    def visit(node: Value) -> Value:
        if not isinstance(node, Arith) or node.op != "/" or node.dtype.name != "f32":
            return node
        if not common(node.right) or common(node.left):
            return node
        return _quotient(node.left, node.right, node.dtype, once, each)

    return map_value(value, visit)


def _quotient(x: Value, s: Value, dtype: DType, once: Hold, each: Hold) -> Value:
    small = Comparison("<", Call("abs", (s,), dtype), Literal(SMALL, dtype))
    c = once("scale", Select(small, Literal(SCALE, dtype), Literal(1.0, dtype), dtype))
    t = once("divisor", Arith("*", s, c, dtype))
    r = once("inverse", Arith("/", Literal(1.0, dtype), t, dtype))
    z = each("dividend", Arith("*", x, c, dtype))
    q = each("quotient", Arith("*", z, r, dtype))
    e = each("rest", Call("fma", (Unary("-", q, dtype), t, z), dtype))
    finite = Comparison("<", Call("abs", (e,), dtype), Literal(float("inf"), dtype))
    return Select(finite, Call("fma", (e, r, q), dtype), q, dtype)
