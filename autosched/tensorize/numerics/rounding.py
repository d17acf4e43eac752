"""Roundings that numpy lacks: to fewer fraction bits, towards zero, to odd; sums and products before any rounding.

Values before rounding are float64, exact or rounded to odd: a later rounding to at most 51 bits is then the rounding
of the exact value (Boldo and Melquiond 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DType
from autosched.ir.oracle.numerics import load, round_float

F64 = npt.NDArray[np.float64]


def least_exponent(dtype: DType) -> int:
    """The exponent of the least normal number (of a scale, which has no others: of the least one)."""
    return -dtype.bias if dtype.scale else 1 - dtype.bias


def exponents(values: Any, dtype: DType) -> npt.NDArray[np.int64]:
    """floor(log2 |x|), at least that of the least normal number; far below everything for zeros."""
    wide = np.asarray(values, np.float64)
    found = np.maximum(np.frexp(wide)[1].astype(np.int64) - 1, least_exponent(dtype))
    return np.where(wide == 0, np.int64(-4000), found)


def flush(values: Any, dtype: DType) -> Any:
    """Container values with subnormals replaced by a zero of their sign; other types than floats as they are."""
    if not dtype.is_float:
        return values
    x = np.asarray(values)
    least = x.dtype.type(2.0 ** least_exponent(dtype))
    return np.where(np.abs(x) < least, np.copysign(x.dtype.type(0), x), x)


def add_odd(a: Any, b: Any) -> F64:
    """a + b in float64, rounded to odd: the last bit is set where the sum is not exact."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    total = a + b
    other = total - a
    error = (a - (total - other)) + (b - other)  # Knuth's two-sum
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.asarray(np.where(inexact, np.nextafter(total, toward), total))


def rounded(values: Any, dtype: DType, mode: str, bits: int | None = None) -> Any:
    """float64 values (see the module) to `dtype`'s container: `rne`, `rz` or `odd`, to `bits` fraction bits if given.

    Values past the largest number become infinite in every mode where the next power of two is reached.
    """
    x = np.asarray(values, np.float64)
    if dtype.name == "f64":
        assert (mode, bits) == ("rne", None), "sums in f64 are rounded to nearest even"
        return x
    with np.errstate(all="ignore"):
        if bits is not None and bits < dtype.mantissa:
            x = _to_bits(x, dtype, mode, bits)
        nearest = round_float(x, dtype)
        if mode == "rne":
            return nearest
        stored = nearest.astype(dtype.numpy)
        limit = 2.0 ** (2 - least_exponent(dtype))
        over = ~np.isfinite(x) | (np.abs(x) >= limit)
        far = np.abs(stored.astype(np.float64)) > np.abs(x)
        cut = load(_toward_zero(stored, far), dtype)
        if mode == "odd":
            inexact = cut.astype(np.float64) != x
            cut = np.where(inexact, _set_last_bit(cut, dtype), cut)
        return np.where(over, nearest, cut)


def _to_bits(x: F64, dtype: DType, mode: str, bits: int) -> F64:
    place = np.where(x == 0, 0, exponents(np.where(np.isfinite(x), x, 1.0), dtype)) - bits
    scaled = np.ldexp(x, -place)
    whole = np.rint(scaled) if mode == "rne" else np.trunc(scaled)
    if mode == "odd":
        whole = np.where((whole != scaled) & (np.fmod(whole, 2) == 0), whole + np.sign(scaled), whole)
    return np.where(np.isfinite(x), np.ldexp(whole, place), x)


def _toward_zero(stored: Any, far: Any) -> Any:
    """One step back where rounding to nearest went too far: the bits of a float count its steps from zero."""
    raw = stored.view(f"u{stored.dtype.itemsize}")
    return np.where(far, raw - raw.dtype.type(1), raw).astype(raw.dtype).view(stored.dtype)


def _set_last_bit(values: Any, dtype: DType) -> Any:
    stored = np.asarray(values).astype(dtype.numpy)
    raw = stored.view(f"u{stored.dtype.itemsize}")
    return load((raw | raw.dtype.type(1)).astype(raw.dtype).view(stored.dtype), dtype)
