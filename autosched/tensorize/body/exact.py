"""Which conversions, products and scalings of numbers are exact."""

from __future__ import annotations

from math import frexp, isfinite

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Cast, Literal, Unary, Value


def holds(source: DType, wide: DType) -> bool:
    """Whether every value of `source` is a value of `wide`."""
    if source == wide:
        return True
    if source.is_integer and wide.is_integer:
        return wide.limits[0] <= source.limits[0] and source.limits[1] <= wide.limits[1]
    if source.is_integer and wide.is_float:
        magnitude = source.bits - (source.kind == "int")
        return not wide.scale and magnitude <= wide.mantissa + 1 and magnitude <= wide.exponents[1]
    if source.is_float and wide.is_float:
        if wide.fnuz or wide.scale or (source.special == "ieee" and wide.special != "ieee"):
            return False  # it has no minus zero, no infinity, or powers of two alone
        if wide.finite and not source.finite:
            return False  # it has no NaN
        (low, high), (wide_low, wide_high) = source.exponents, wide.exponents
        return source.mantissa <= wide.mantissa and wide_low <= low and high <= wide_high
    return False


def product_fits(left: Value, right: Value, dtype: DType) -> bool:
    """Whether the product of two widened floats is exact in `dtype`: no input makes it inexact, over- or underflow."""
    match left, right:
        case Cast(a, _, _), Cast(b, _, _) if a.dtype.is_float and b.dtype.is_float:
            if not (holds(a.dtype, dtype) and holds(b.dtype, dtype)):
                return False
            (low_a, high_a), (low_b, high_b) = a.dtype.exponents, b.dtype.exponents
            low, high = dtype.exponents
            bits = a.dtype.mantissa + b.dtype.mantissa + 2
            return bits <= dtype.mantissa + 1 and low <= low_a + low_b and high_a + high_b + 1 <= high
    return False


def exact_factors(value: Value, dtype: DType) -> tuple[Value, ...] | None:
    """The widened floats that a product in `dtype` multiplies, where no input makes any part of it inexact, over- or
    underflow: then they may be multiplied in any order. None where there may be such an input."""
    factors = _factors(value)
    types = [f.operand.dtype for f in factors if isinstance(f, Cast) and f.dtype == dtype and f.operand.dtype.is_float]
    if len(types) < len(factors) or not all(holds(t, dtype) for t in types):
        return None
    low, high = dtype.exponents
    fits = sum(t.mantissa + 1 for t in types) <= dtype.mantissa + 1
    fits = fits and sum(min(0, t.exponents[0]) for t in types) >= low
    return factors if fits and sum(max(0, t.exponents[1]) + 1 for t in types) <= high else None


def _factors(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Arith) and value.op == "*":
        return _factors(value.left) + _factors(value.right)
    return (value,)


def rounds_once(op: str, wide: DType, dtype: DType) -> bool:
    """Whether `op` of two numbers of `dtype`, computed in `wide` and then rounded, is `op` of `dtype`.

    A type of at least 2 p + 2 bits has no result that the second rounding takes for a tie (Figueroa 1995), nor where it
    underflows (Roux 2014): f32 has no more exponents than bf16, but products of so few bits are exact in it down to
    half of bf16's least subnormal.
    """
    if not (dtype.is_float and wide.is_float and holds(dtype, wide) and dtype.special == wide.special == "ieee"):
        return False
    return op in ("min", "max") or (op in "+-*/" and wide.mantissa + 1 >= 2 * (dtype.mantissa + 1) + 2)


def narrow(value: Value, dtype: DType) -> Value | None:
    """`value`, of a wider type, as the number of `dtype` that it is; None where it may be none."""
    match value:
        case Cast(operand, _, _) if operand.dtype == dtype:
            return operand
        case Cast(operand, _, _) if operand.dtype.is_float and holds(operand.dtype, dtype):
            return Cast(operand, dtype)
        case Unary("-", operand, _) if (inner := narrow(operand, dtype)) is not None:
            return Unary("-", inner, dtype)
        case Literal(number, _) if number == 0 or (isfinite(number) and _normal(number, dtype)):
            return Literal(float(number), dtype)
    return None


def _normal(number: float, dtype: DType) -> bool:
    """Whether it is a normal number of a float type."""
    (fraction, exponent), (low, high) = frexp(number), dtype.exponents
    return low + dtype.mantissa <= exponent - 1 <= high and (fraction * (2 << dtype.mantissa)).is_integer()


def reciprocal(value: Value) -> Literal | None:
    """`1 / value` of a literal power of two, where it is a normal number: dividing is then multiplying by it."""
    match value:
        case Literal(number, dtype) if dtype.is_float and number and isfinite(number) and abs(frexp(number)[0]) == 0.5:
            if _normal(1 / number, dtype):
                return Literal(1 / number, dtype)
    return None
