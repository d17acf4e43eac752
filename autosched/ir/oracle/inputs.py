"""Random data for a program, within what it assumes."""

from __future__ import annotations

from math import frexp, prod
from typing import Any

import numpy as np

from autosched.errors import ProgramError
from autosched.ir.dtypes import DType
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.oracle.distinct import with_distinct
from autosched.ir.oracle.indexed import indexed_range
from autosched.ir.oracle.numerics import container, round_float, store
from autosched.ir.program import Program

SCALES = -4, 4
"""Exponents of scales (e8m0) of which nothing is assumed."""


def random_inputs(program: Program, rng: np.random.Generator, most: int | None = None) -> dict[str, Any]:
    """One array an input tensor (name to array) and one number a run-time scalar.

    Integers are uniform over their whole type, floats over [-1, 1), those of 4 bits over all that they hold, scales
    over powers of two near 1, each cut to the ranges that `assume` states; what is a subscript stays inside the tensors
    that it indexes, as far as that can be told (`oracle.indexed`).
    A tensor whose values are known (`Program.data`) has these, or as much of them as its shape holds.
    A tensor of more than `most` elements repeats a random run of so many (a prime number keeps rows apart).
    Separate what `run` takes with `split_inputs`. Symbolic sizes must have been filled in.
    """
    found: dict[str, Any] = {}
    for name in program.parameters:
        low, high = assumed_range(program, name)
        if name in program.scalars:
            dtype = program.scalars[name].dtype
            found[name] = store(_draw(dtype, (), low, high, rng, name), dtype)[()]
        elif name in program.inputs:
            tensor = program.tensors[name]
            known = program.data.get(name)
            if known is not None and known.values is not None:
                found[name] = known.values[tuple(slice(n) for n in tensor.extents)].copy()
                continue
            if known is not None:
                low, high = known.low, known.high
            elif tensor.dtype.is_integer and (inside := indexed_range(program, name)) is not None:
                low, high = _inside(low, high, inside)
            whole = tensor.extents
            repeats = most is not None and prod(whole) > most
            shape = (most,) if most is not None and repeats else whole
            drawn = store(_draw(tensor.dtype, shape, low, high, rng, name), tensor.dtype)
            found[name] = np.resize(drawn, whole) if repeats else drawn
    return with_distinct(program, found)


def split_inputs(program: Program, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`random_inputs`' answer as the two arguments of `run`: arrays and scalars."""
    arrays = {n: v for n, v in values.items() if n in program.tensors}
    return arrays, {n: v for n, v in values.items() if n in program.scalars}


def _inside(
    low: float | None, high: float | None, inside: tuple[int, int]
) -> tuple[float | None, float | None]:
    """The part of an assumed range that lies inside; all of it where none does."""
    least = inside[0] if low is None else max(low, inside[0])
    most = inside[1] if high is None else min(high, inside[1])
    return (least, most) if least <= most else (low, high)


def _draw(
    dtype: DType, shape: tuple[int, ...], low: float | None, high: float | None, rng: np.random.Generator, name: str
) -> Any:
    if dtype.is_integer:
        least, most = dtype.limits
        least = least if low is None else max(least, int(np.ceil(low)))
        most = most if high is None else min(most, int(np.floor(high)))
        if least > most:
            raise ProgramError(f"no {dtype} value satisfies the assumptions about {name}")
        kind = np.uint64 if dtype.name == "u64" else np.int64
        return np.asarray(rng.integers(least, most, size=shape, dtype=kind, endpoint=True)).astype(container(dtype))
    if dtype.scale:
        return _powers(dtype, shape, low, high, rng, name)
    if dtype.finite and low is None and high is None:
        least_f, most_f = -dtype.greatest, dtype.greatest
    else:
        least_f, most_f = _float_range(low, high)
    values = round_float(rng.uniform(least_f, most_f, size=shape), dtype)
    # Rounding to the dtype may step over an end of the assumed range; the ends themselves may not be representable.
    if low is not None:
        values = np.where(values < low, _inward(dtype, low, np.inf), values)
    if high is not None:
        values = np.where(values > high, _inward(dtype, high, -np.inf), values)
    if (low is not None and np.any(values < low)) or (high is not None and np.any(values > high)):
        raise ProgramError(f"no {dtype} value satisfies the assumptions about {name}")
    return np.asarray(values, container(dtype))


def _powers(
    dtype: DType, shape: tuple[int, ...], low: float | None, high: float | None, rng: np.random.Generator, name: str
) -> Any:
    least, most = dtype.exponents
    first, last = SCALES
    if low is not None:
        fraction, exponent = frexp(low)
        first = least if low <= 0 else max(least, exponent - (fraction == 0.5))
        last = min(most, max(first, last))
    if high is not None:
        last = least - 1 if high <= 0 else min(most, frexp(high)[1] - 1)
        first = first if low is not None else max(least, min(first, last))
    if first > last:
        raise ProgramError(f"no {dtype} value satisfies the assumptions about {name}")
    return np.exp2(rng.integers(first, last, size=shape, endpoint=True)).astype(container(dtype))


def _float_range(low: float | None, high: float | None) -> tuple[float, float]:
    if low is None and high is None:
        return -1.0, 1.0
    if low is None:
        assert high is not None
        return min(-1.0, high - 2.0), high
    if high is None:
        return low, max(1.0, low + 2.0)
    return low, high


def _inward(dtype: DType, end: float, toward: float) -> Any:
    """The value of `dtype` nearest to `end` on the side of `toward`."""
    value = float(round_float(np.float64(end), dtype))
    step = max(abs(end), 1e-30) * dtype.unit_roundoff
    while (value < end) if toward > 0 else (value > end):
        end_moved = end + step if toward > 0 else end - step
        value = float(round_float(np.float64(end_moved), dtype))
        step *= 2
        if step > 1e300:
            break
    return container(dtype)(value)
