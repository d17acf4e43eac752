"""How an intrinsic adds: the `numerics` of its YAML as functions on arrays.

`step` gives a function that folds a term (or a pair of factors that round once with their addition) into the
accumulator; `aligned_block` is the sum of a tensor core, which aligns a block of addends to the largest exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autosched.ir.dtypes import DType
from autosched.ir.evaluate import arith, call
from autosched.ir.numerics import load, round_float
from autosched.tensorize.intrinsic import Numerics

Flush = Callable[[Any, DType], Any]
Step = Callable[..., Any]
"""`step(accumulator, term)` or `step(accumulator, left, right)`; arrays of one shape and dtype."""


def step(op: str, dtype: DType, flush: Flush | None, *, fused: bool) -> Step:
    """The function that applies `op` (of an assignment) once, on container values; `fused` takes two factors and rounds
    once. `flush` (of `flusher`) treats the accumulator and the result; the terms are flushed where they arise."""
    operation = {"+=": "+", "-=": "-", "*=": "*", "min=": "min", "max=": "max"}.get(op)
    f: Flush = flush or (lambda x, _: x)
    if fused:
        return lambda acc, left, right: f(call("fma", [left, right, f(acc, dtype)], dtype), dtype)
    if operation is None:
        return lambda acc, term: f(term, dtype)
    return lambda acc, term: f(arith(operation, f(acc, dtype), term, dtype), dtype)


def aligned_block(acc: Any, terms: Sequence[Any], dtype: DType, numerics: Numerics) -> Any:
    """`acc` plus a block of terms as tensor cores do it: every addend is cut to `fraction_bits` below the largest
    exponent of the block, the sum of those is exact, and the result is rounded once.

    The addends are float64, so `fraction_bits` up to about 45 and blocks of up to 256 terms are exact.
    """
    assert numerics.fraction_bits is not None
    with np.errstate(all="ignore"):
        addends = np.stack([np.asarray(x, np.float64) for x in (acc, *terms)])
        plain = addends.sum(axis=0)  # infinities and NaN come out as IEEE says
        finite = np.isfinite(addends).all(axis=0)
        addends = np.where(finite, addends, 0.0)
        exponent = np.frexp(np.abs(addends).max(axis=0))[1] - 1
        cut = np.trunc if numerics.rounding == "rz" else np.rint
        scaled = cut(np.ldexp(addends, numerics.fraction_bits - exponent)).sum(axis=0)
        total = np.ldexp(scaled, exponent - numerics.fraction_bits)
        rounded = _toward_zero(total, dtype) if numerics.rounding == "rz" else round_float(total, dtype)
        return np.where(finite, rounded, round_float(plain, dtype))


def _toward_zero(x: Any, dtype: DType) -> Any:
    """float64 to `dtype`, rounded towards zero: nearest, then one step back where that went too far."""
    nearest = round_float(x, dtype).astype(dtype.numpy)
    too_far = np.abs(nearest.astype(np.float64)) > np.abs(x)
    return load(np.where(too_far, np.nextafter(nearest, dtype.numpy(0)), nearest).astype(dtype.numpy), dtype)


def flusher(numerics: Numerics) -> Flush | None:
    """The function that makes subnormals zeros of their sign; None where `numerics` keeps them."""
    if numerics.subnormals != "flushed":
        return None

    def flush(x: Any, dtype: DType) -> Any:
        if not dtype.is_float:
            return x
        exponent_bits = (19 if dtype.name == "tf32" else dtype.bits) - dtype.mantissa - 1
        values = np.asarray(x)
        least = values.dtype.type(2.0 ** (2 - 2 ** (exponent_bits - 1)))
        return np.where(np.abs(values) < least, np.copysign(values.dtype.type(0), values), values)

    return flush
