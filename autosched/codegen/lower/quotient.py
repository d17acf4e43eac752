"""Quotients by what a whole row has in common: its reciprocal once, then a product and a correction an element.

    r = 1 / s                                   once
    q = x * r;  e = fma(-q, s, x);  y = fma(e, r, q)      three instructions where a division takes ten

With fused operations y is x / s rounded to nearest, as the division is, unless something on the way underflows
(P. Markstein, IBM Journal of Research and Development 34, 1990). Where e is no finite number (s is zero or infinite,
or q is) q is the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Call, Comparison, Literal, Read, Select, Unary, Value, map_value

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
    x = x if isinstance(x, Read) else each("dividend", x)
    r = once("inverse", Arith("/", Literal(1.0, dtype), s, dtype))
    q = each("quotient", Arith("*", x, r, dtype))
    e = each("rest", Call("fma", (Unary("-", q, dtype), s, x), dtype))
    finite = Comparison("<", Call("abs", (e,), dtype), Literal(float("inf"), dtype))
    return Select(finite, Call("fma", (e, r, q), dtype), q, dtype)
