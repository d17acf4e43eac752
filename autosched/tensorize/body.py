"""Proof 2, the body: do two scalar expressions compute the same function of their inputs, bit for bit?

`canonical` decides most cases without a solver: it applies rules that hold for every input (each is stated where it is
applied). What is left of integers is decided by exhaustion (two 8-bit inputs) or in bit-vectors; what is left of floats
is refuted by running, or honestly unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Logical, Select, Unary, Value, walk
from autosched.logic import Bool
from autosched.tensorize.body_bits import check_equal
from autosched.tensorize.counterexample import domain_bits, find_difference, find_difference_exhaustively

_EXPONENTS = {
    "e4m3": (-9, 8), "e5m2": (-16, 15), "f16": (-24, 15), "bf16": (-133, 127),
    "tf32": (-136, 127), "f32": (-149, 127), "f64": (-1074, 1023),
}  # fmt: skip
"""Exponents of the least subnormal and of the greatest finite value (OCP OFP8 1.0; IEEE 754-2019)."""
_COMMUTE = frozenset(["+", "*", "&", "|", "^", "min", "max"])
"""Of integers. Of floats + and * commute; min and max of two zeros may take either's sign."""
_FLIP = {">": "<", ">=": "<="}


@dataclass(frozen=True)
class Proof:
    """`status` is `proved`, `differs` (with a counterexample where one was found) or `unknown`."""

    status: str
    method: str
    counterexample: dict[str, Any] | None = None


def prove_equal(program: Value, intrinsic: Value, timeout_ms: int) -> Proof:
    """Whether two values of one dtype are the same function of the reads and scalars that they share."""
    if canonical(program) == canonical(intrinsic):
        return Proof("proved", "structure")
    integers = all(v.dtype.is_integer or v.dtype.kind == "bool" for side in (program, intrinsic) for v in walk(side))
    if integers and domain_bits(program, intrinsic) <= 16:
        found = find_difference_exhaustively(program, intrinsic)
        return Proof("differs" if found else "proved", "exhaustion", found)
    found = find_difference(program, intrinsic)
    if found is not None:
        return Proof("differs", "running", found)
    if not integers:
        return Proof("unknown", "structure")
    status, found = check_equal(program, intrinsic, timeout_ms)
    return Proof(status, "z3", found)


def holds(source: DType, wide: DType) -> bool:
    """Whether every value of `source` is a value of `wide`."""
    if source == wide:
        return True
    if source.is_integer and wide.is_integer:
        return wide.limits[0] <= source.limits[0] and source.limits[1] <= wide.limits[1]
    if source.is_integer and wide.is_float:
        magnitude = source.bits - (source.kind == "int")
        return magnitude <= wide.mantissa + 1 and magnitude <= _EXPONENTS[wide.name][1]
    if source.is_float and wide.is_float:
        (low, high), (wide_low, wide_high) = _EXPONENTS[source.name], _EXPONENTS[wide.name]
        return source.mantissa <= wide.mantissa and wide_low <= low and high <= wide_high
    return False


def exact_product(term: Value) -> bool:
    """Whether `term` is a product of widened floats that no input can make inexact, overflow or underflow.

    Then a fused multiply-add rounds exactly as a multiplication followed by an addition does.
    """
    match canonical(term):
        case Arith("*", Cast(a, _, _), Cast(b, _, _), dtype) if a.dtype.is_float and b.dtype.is_float:
            (low_a, high_a), (low_b, high_b) = _EXPONENTS[a.dtype.name], _EXPONENTS[b.dtype.name]
            low, high = _EXPONENTS[dtype.name]
            bits = a.dtype.mantissa + b.dtype.mantissa + 2
            return bits <= dtype.mantissa + 1 and low <= low_a + low_b and high_a + high_b + 1 <= high
    return False


@lru_cache(maxsize=4096)
def canonical(value: Value) -> Value:
    """The normal form: two values with one normal form are equal on all inputs (NaN payloads aside)."""
    match value:
        case Cast(operand, dtype, saturate):
            return _cast(canonical(operand), dtype, saturate)
        case Unary("-", operand, _):
            return _negated(canonical(operand))
        case Unary(op, operand, dtype):
            return Unary(op, canonical(operand), dtype)
        case Arith("-", left, right, dtype):  # a - b is a + (-b), in IEEE 754 too
            return canonical(Arith("+", left, Unary("-", right, dtype), dtype))
        case Arith(op, left, right, dtype) if op in (_COMMUTE if dtype.is_integer else "+*"):
            return _commuted(op, canonical(left), canonical(right), dtype)
        case Arith(op, left, right, dtype):
            return Arith(op, canonical(left), canonical(right), dtype)
        case Comparison(op, left, right, _) if op in _FLIP:
            return Comparison(_FLIP[op], canonical(right), canonical(left))
        case Comparison(op, left, right, _):
            a, b = canonical(left), canonical(right)
            if op in ("==", "!="):
                a, b = _sorted([a, b])
            return Comparison(op, a, b)
        case Logical(op, parts, _):
            return Logical(op, tuple(p if isinstance(p, Bool) else canonical(p) for p in parts))
        case Select(condition, then, other, dtype):
            test = condition if isinstance(condition, Bool) else canonical(condition)
            return Select(test, canonical(then), canonical(other), dtype)
        case Call("fma", (a, b, c), dtype):
            x, y = _sorted([canonical(a), canonical(b)])
            return Call("fma", (x, y, canonical(c)), dtype)
        case Call("abs", (operand,), dtype) if dtype.signed:  # |x| is |-x|, for the least integer too
            inner = canonical(operand)
            return Call("abs", (min(inner, _distributed(inner), key=repr),), dtype)
        case Call(function, args, dtype):
            return Call(function, tuple(canonical(a) for a in args), dtype)
    return value


def _cast(inner: Value, dtype: DType, saturate: bool) -> Value:
    source = inner.dtype
    if source == dtype:
        return inner
    if holds(source, dtype):
        saturate = False  # nothing to clamp
    if isinstance(inner, Unary) and inner.op == "-" and source.is_float and dtype.is_float:
        return _negated(_cast(inner.operand, dtype, saturate))  # rounding to nearest is symmetric
    if isinstance(inner, Cast) and not inner.saturate:
        origin, middle = inner.operand.dtype, source
        # An exact conversion on the way changes nothing.
        if holds(origin, middle):
            return _cast(inner.operand, dtype, saturate)
        # Nor does an integer one that keeps at least the bits which the outer keeps.
        if all(t.is_integer for t in (origin, middle, dtype)) and middle.bits >= dtype.bits and not saturate:
            return _cast(inner.operand, dtype, False)
    return Cast(inner, dtype, saturate)


def _negated(inner: Value) -> Value:
    match inner:
        case Unary("-", operand, _):  # -(-x)
            return operand
        case Literal(number, dtype) if dtype.is_float:
            return Literal(-number, dtype)
    return Unary("-", inner, inner.dtype)


def _distributed(inner: Value) -> Value:
    """`-inner`, with the sign moved into a sum: rounding to nearest is symmetric, and only a zero's sign may differ."""
    match inner:
        case Arith("+", left, right, dtype):
            return _commuted("+", _distributed(left), _distributed(right), dtype)
    return _negated(inner)


def _commuted(op: str, left: Value, right: Value, dtype: DType) -> Value:
    """Sorted operands. Integers are flattened first: these operations are associative modulo 2^w; floats are not."""
    parts = [left, right]
    if dtype.is_integer:
        parts = [q for p in parts for q in _flat(op, p)]
    sign = False
    if op == "*":  # (-x) * y is -(x * y): modulo 2^w, and in IEEE 754, where the sign of a product is separate
        sign = sum(isinstance(p, Unary) and p.op == "-" for p in parts) % 2 == 1
        parts = [p.operand if isinstance(p, Unary) and p.op == "-" else p for p in parts]
    result = reduce(lambda a, b: Arith(op, a, b, dtype), _sorted(parts))
    return _negated(result) if sign else result


def _flat(op: str, value: Value) -> list[Value]:
    if isinstance(value, Arith) and value.op == op:
        return _flat(op, value.left) + _flat(op, value.right)
    return [value]


def _sorted(parts: list[Value]) -> list[Value]:
    return sorted(parts, key=repr)
