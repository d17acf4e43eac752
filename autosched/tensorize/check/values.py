"""Operand values that tell instructions apart: corners, bits at random, moderate numbers, and all pairs of bytes."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DType
from autosched.tensorize.intrinsic import Intrinsic

Values = npt.NDArray[np.generic]
CORNER_CASES = 1500
RANDOM_CASES = 300


def corners(dtype: DType) -> Values:
    """Values at which instructions differ: limits, neighbours of limits, signed zeros, subnormals, infinities, NaN."""
    if dtype.is_integer:
        low, high = dtype.limits
        near = {0, 1, 2, 3, low, low + 1, low // 2, high, high - 1, high // 2, -1, -2}
        whole = np.int64 if low < 0 else np.uint64  # not as floats: 2^64 - 1 is none
        return np.array([v for v in sorted(near) if low <= v <= high], whole).astype(dtype.numpy)
    if dtype.scale:
        one, nan = dtype.bias, dtype.codes.nan
        return np.array([0, 1, 2, one - 1, one, one + 1, nan - 2, nan - 1, nan], np.uint8).view(dtype.numpy)
    bits, size = dtype.bits, dtype.bytes
    drop = dtype.padding
    one = int(np.array(1.0, dtype.numpy).view(f"u{size}"))
    fraction = 1 << (dtype.mantissa + drop)
    unit = 1 << drop
    exponents = (1 << (bits - 1)) - fraction  # the bits of the largest exponent: infinity, or e4m3's largest numbers
    positive = [0, unit, fraction - unit, fraction, one, one + unit, one - unit, one + fraction // 2]
    last = 1 << (bits - 1)
    positive += [exponents - unit, exponents, last - 2 * unit, last - unit, one + (dtype.mantissa + 1) * fraction]
    signed = sorted({p for p in positive if p < 1 << (bits - 1)})
    raw = np.array([*signed, *(p | 1 << (bits - 1) for p in signed)], np.uint64)
    return raw.astype(f"u{size}").view(dtype.numpy)


def any_bits(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
    """Every pattern of the type equally likely."""
    if dtype.is_integer and dtype.bits < 8:
        low, high = dtype.limits
        return np.asarray(rng.integers(low, high + 1, shape).astype(np.int8).astype(dtype.numpy))
    size = np.dtype(dtype.numpy).itemsize
    raw = rng.integers(0, 1 << min(dtype.bits, 8), (*shape, size), dtype=np.uint8)
    if dtype.padding:
        return np.asarray(raw.view(np.uint32)[..., 0] >> dtype.padding << dtype.padding).view(np.float32)
    return np.asarray(raw.view(dtype.numpy)[..., 0])


def moderate(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
    """Numbers as programs have them: around one for floats, small for integers."""
    if dtype.is_integer:
        low, high = dtype.limits
        return rng.integers(max(low, -8), min(high, 8) + 1, shape).astype(np.int64).astype(dtype.numpy)
    if dtype.scale:
        return np.asarray(np.exp2(rng.integers(-4, 5, shape)).astype(dtype.numpy))
    values = rng.standard_normal(shape).astype(dtype.numpy)
    if dtype.padding:
        return (values.view(np.uint32) >> dtype.padding << dtype.padding).view(np.float32)
    return values


def cases(intrinsic: Intrinsic, rng: np.random.Generator) -> dict[str, Values]:
    """Arrays of shape (cases, *operand shape), the same number of cases for every operand."""
    operands = list(intrinsic.operands.values())
    picks = {o.name: corners(o.dtype) for o in operands}
    combinations = list(product(*(range(len(picks[o.name])) for o in operands)))
    if len(combinations) > CORNER_CASES:
        combinations = [combinations[n] for n in rng.choice(len(combinations), CORNER_CASES, replace=False)]
    chosen = np.array(combinations)
    parts: dict[str, list[Values]] = {}
    for column, o in enumerate(operands):
        per_case = picks[o.name][chosen[:, column]].reshape(-1, *(1,) * len(o.shape))
        shape = (RANDOM_CASES, *o.shape)
        mixed = picks[o.name][rng.integers(0, len(picks[o.name]), shape)]
        parts[o.name] = [
            np.broadcast_to(per_case, (len(chosen), *o.shape)),
            mixed,
            any_bits(o.dtype, shape, rng),
            moderate(o.dtype, shape, rng),
            # Corners against moderate numbers: the accumulator near its limits, operands small, and the reverse.
            mixed if o.written else moderate(o.dtype, shape, rng),
            moderate(o.dtype, shape, rng) if o.written else mixed,
        ]
    every = _all_bytes(intrinsic, rng)
    for name, values in every.items():
        parts[name].append(values)
    return {name: np.concatenate(p) for name, p in parts.items()}


def _all_bytes(intrinsic: Intrinsic, rng: np.random.Generator) -> dict[str, Values]:
    """All 65,536 pairs of two 8-bit operands of one shape, spread over the elements; nothing for other intrinsics."""
    inputs = intrinsic.inputs
    if len(inputs) != 2 or any(o.dtype.bits != 8 for o in inputs) or inputs[0].shape != inputs[1].shape:
        return {}
    elements = inputs[0].elements
    if 65536 % elements:
        return {}
    first, second = np.divmod(rng.permutation(65536), 256)
    found: dict[str, Values] = {}
    for operand, column in zip(inputs, (first, second), strict=True):
        found[operand.name] = column.astype(np.uint8).view(operand.dtype.numpy).reshape(-1, *operand.shape)
    accumulator = intrinsic.accumulator
    found[accumulator.name] = moderate(accumulator.dtype, (65536 // elements, *accumulator.shape), rng)
    return found


def agree(left: npt.NDArray[np.generic], right: npt.NDArray[np.generic], intrinsic: Intrinsic) -> npt.NDArray[np.bool_]:
    """Elementwise: the same bits, or where the instruction approximates, `right` within its bound of `left`, which is
    rounded to nearest. NaN, infinities and zeros (unless the bound is a number) are the same; beside the greatest
    number one may be infinite."""
    dtype, numerics = intrinsic.accumulator.dtype, intrinsic.numerics
    same = same_bits(left, right, dtype)
    if not numerics.bounded:
        return same
    share, beside = numerics.relative or 0.0, numerics.absolute or 0.0
    least = 2.0 ** (1 - dtype.bias) if intrinsic.numerics.flushed else 2.0 ** dtype.exponents[0]
    with np.errstate(invalid="ignore", over="ignore"):
        exact, found = left.astype(np.float64), right.astype(np.float64)
        off = np.abs(found - exact) <= (share + dtype.unit_roundoff) * np.abs(exact) + least + beside
        finite = np.isfinite(exact) & np.isfinite(found) & ((exact != 0) | (beside > 0))
        near = np.minimum(np.abs(exact), np.abs(found)) >= dtype.greatest * (1 - 2 * share)
        border = (np.isinf(exact) != np.isinf(found)) & near & (np.sign(exact) == np.sign(found))
    return np.asarray(same | (finite & off) | border)


def same_bits(left: npt.NDArray[np.generic], right: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.bool_]:
    """Elementwise equality of bits; any NaN equals any NaN, since their payload is left open everywhere."""
    if not dtype.is_float:
        return np.asarray(left == right)
    kind = f"u{np.dtype(dtype.numpy).itemsize}"
    with np.errstate(invalid="ignore"):  # of NaN that signal
        both_nan = np.isnan(left.astype(np.float64)) & np.isnan(right.astype(np.float64))
    equal = np.ascontiguousarray(left).view(kind) == np.ascontiguousarray(right).view(kind)
    return np.asarray(equal | both_nan)
