"""Exact numpy arithmetic of the dtypes: one rounding or one wrap an operation.

A value is held in a *container*: floats narrower than f32 in float32 (all their values are exact there), integers
narrower than a byte in uint8 or int8, all others in their own numpy type. One float32 operation followed by one
rounding equals the operation rounded once, since 24 >= 2p + 2 bits (Figueroa 1995) for p <= 11.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DType

Array = npt.NDArray[Any]


def container(dtype: DType) -> Any:
    """The numpy type that computes with `dtype`."""
    if dtype.small_float:
        return np.float32
    if dtype.sub_byte:
        return np.int8 if dtype.signed else np.uint8
    return dtype.numpy


def load(array: Any, dtype: DType) -> Any:
    """Stored elements to the container."""
    if dtype.name == "b1":
        return array & np.uint8(1)
    if dtype.is_float and dtype.sub_byte:
        array = only_bits(array, dtype)
    return array if array.dtype == container(dtype) else array.astype(container(dtype))


def only_bits(array: Any, dtype: DType) -> Any:
    """Stored elements below a byte without what else the byte holds."""
    raw = np.asarray(array).view(np.uint8)
    return (raw & np.uint8((1 << dtype.bits) - 1)).view(dtype.numpy)


def store(values: Any, dtype: DType) -> Any:
    """Container values to stored elements."""
    return values if values.dtype == dtype.numpy else values.astype(dtype.numpy)


def normalise(values: Any, dtype: DType) -> Any:
    """Bring the result of one container operation back to values of `dtype`: one rounding, or one wrap."""
    if dtype.small_float:
        if dtype.padding:
            return _drop_bits(values, dtype.padding)
        if dtype.finite:  # ml_dtypes makes zeros of NaN too, whose sign is the opposite of the NaN's
            values = np.where(np.isnan(values), np.float32(0), values)
        return values.astype(dtype.numpy).astype(np.float32)
    if dtype.sub_byte:
        if dtype.signed:
            unused = np.int8(8 - dtype.bits)
            return (values << unused) >> unused
        return values & np.uint8((1 << dtype.bits) - 1)
    return values


def _drop_bits(values: Any, count: int) -> Any:
    """Float32 to the nearest value whose last `count` fraction bits are zero, ties to even."""
    v = np.asarray(values, np.float32)
    bits = v.view(np.uint32)
    half, kept = np.uint32((1 << (count - 1)) - 1), np.uint32(2**32 - (1 << count))
    rounded = (bits + half + ((bits >> np.uint32(count)) & np.uint32(1))) & kept
    return np.where(np.isfinite(v), rounded.view(np.float32), v)


def _to_f32_odd(values: Any) -> Any:
    """Float64 to float32, rounded to odd: a further rounding to fewer bits is then a single rounding (Boldo and
    Melquiond 2008)."""
    v = np.asarray(values, np.float64)
    near = v.astype(np.float32)
    even = (near.view(np.uint32) & np.uint32(1)) == 0
    wrong = (near.astype(np.float64) != v) & even & ~np.isnan(v)
    toward = np.where(near.astype(np.float64) < v, np.float32(np.inf), np.float32(-np.inf))
    return np.where(wrong, np.nextafter(near, toward), near)


def round_float(values: Any, dtype: DType) -> Any:
    """Float values of any width rounded once into `dtype` (container values)."""
    with np.errstate(all="ignore"):
        if dtype.name == "f64":
            return np.asarray(values).astype(np.float64)
        if dtype.name == "f32":
            return np.asarray(values).astype(np.float32)
        v = np.asarray(values)
        return normalise(_to_f32_odd(v) if v.dtype == np.float64 else v.astype(np.float32), dtype)


def in_dtype(values: Any, dtype: DType) -> Any:
    """Numbers that data are made of, as stored elements of a float dtype; of a scale their sizes, or its least."""
    if dtype.scale:
        values = np.maximum(np.abs(values), 2.0 ** dtype.exponents[0])
    return store(np.asarray(round_float(values, dtype)), dtype)


def float_literal(value: int | float, dtype: DType) -> float:
    """`value` rounded once into a float dtype."""
    try:
        wide = float(value)
    except OverflowError:
        wide = math.copysign(math.inf, value)
    return float(round_float(np.float64(wide), dtype))


def int_to_float(values: Any, dtype: DType) -> Any:
    """Integers rounded once into a float dtype."""
    v = np.asarray(values)
    if dtype.name in ("f32", "f64"):
        return v.astype(dtype.numpy)  # numpy converts every integer width to these with one rounding
    if v.dtype.itemsize == 8:
        # Sticky bit: above 2**53 keep 53 bits and or the rest into the last, which is rounding to odd.
        eleven = v.dtype.type(0x7FF)
        folded = (v & ~eleven) | np.where((v & eleven) != 0, v.dtype.type(0x800), v.dtype.type(0))
        big = (v > v.dtype.type(2**53)) if v.dtype.kind == "u" else (v > 2**53) | (v < -(2**53))
        v = np.where(big, folded, v)
    return round_float(v.astype(np.float64), dtype)


def wrap(values: Any, dtype: DType) -> Any:
    """Integers of any width modulo 2**bits into an integer dtype's container."""
    v = np.asarray(values)
    return normalise(v if v.dtype == container(dtype) else v.astype(container(dtype)), dtype)


def wrap_int(value: int, dtype: DType) -> int:
    """A Python int modulo 2**bits."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def saturate(values: Any, source: DType, dtype: DType) -> Any:
    """Integers of `source` clamped to the range of `dtype`."""
    low, high = (
        max(a, b) if k == 0 else min(a, b) for k, (a, b) in enumerate(zip(source.limits, dtype.limits, strict=True))
    )
    if low > high:  # cannot happen: every pair of ranges holds 0
        raise AssertionError
    v = np.asarray(values)
    return wrap(np.clip(v, v.dtype.type(low), v.dtype.type(high)), dtype)


def float_to_int(values: Any, dtype: DType, saturating: bool) -> Any:
    """Floats to integers: nearest even, NaN to 0; out of range clamps when `saturating`, else wraps (infinity to 0)."""
    with np.errstate(all="ignore"):
        v = np.rint(np.asarray(values).astype(np.float64))
        v = np.where(np.isnan(v), 0.0, v)
        if saturating:
            low, high = dtype.limits
            # 2**63 and 2**64 are floats, their predecessors are not: select the limits instead of clipping to them.
            inside = np.where((v >= low) & (v < high + 1), v, 0.0)
            exact = _exact_int(inside, dtype)
            kind = container(dtype)
            return np.where(v < low, kind(low), np.where(v >= high + 1, kind(high), exact)).astype(kind)
        return _exact_int(np.where(np.isinf(v), 0.0, v), dtype)


def _exact_int(v: Any, dtype: DType) -> Any:
    """Integral float64 values modulo 2**bits; every step is exact."""
    r = np.fmod(v, 2.0**64)
    r = np.where(r >= 2.0**63, r - 2.0**64, r)
    r = np.where(r < -(2.0**63), r + 2.0**64, r)
    return wrap(r.astype(np.int64), dtype)


def reinterpreted(values: Any, source: DType, dtype: DType) -> Any:
    """The bits of one dtype read as another of the same width, both in containers. Those of a NaN are left open."""
    with np.errstate(invalid="ignore"):
        raw = np.asarray(store(np.asarray(values), source))
    if source.sub_byte and source.kind == "int":
        raw = raw.astype(np.int8) & np.int8((1 << source.bits) - 1)
    raw = raw.view(f"u{source.bytes}")
    if dtype.sub_byte and dtype.kind == "int":
        return wrap(raw.astype(np.int8), dtype)
    return load(raw.view(dtype.numpy), dtype)


def cast(values: Any, source: DType, dtype: DType, saturating: bool = False) -> Any:
    """The language's conversion between two dtypes' containers; float32 to f32, which nothing rounds, is no copy."""
    if source.is_float:
        if dtype.name == "f32" and (held := np.asarray(values)).dtype == np.float32:
            return held
        return round_float(values, dtype) if dtype.is_float else float_to_int(values, dtype, saturating)
    if dtype.is_float:
        return int_to_float(values, dtype)
    return saturate(values, source, dtype) if saturating else wrap(values, dtype)
