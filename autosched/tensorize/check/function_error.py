"""Is a function within its bound? Its steps are run on many arguments, or on all of them, and compared with the
language's function in f64, whose own error is far below a unit in the last place of an f32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DTYPES
from autosched.ir.formula import Formula, evaluate_formula
from autosched.ir.oracle.evaluate import call

Array = npt.NDArray[Any]
CHUNK = 1 << 20
SAMPLES = 1 << 18
F64 = DTYPES["f64"]
UNIT = 2.0**-23
"""What errors are counted in, as a share of the result: a unit in the last place of an f32 is that at most."""
LEAST = 2.0**-149
"""The distance between subnormal f32 numbers."""
NORMAL = 2.0**-126


def arguments(rng: np.random.Generator, exhaustive: bool) -> Iterator[Array]:
    """f32 arguments in blocks: all 2^32 bit patterns, or some at random, all round ones and the neighbours of both."""
    if exhaustive:
        for start in range(0, 1 << 32, CHUNK):
            yield np.arange(start, start + CHUNK, dtype=np.uint32).view(np.float32)
        return
    # Every exponent with some fractions, both signs: infinities, NaN, zeros and subnormals among them.
    fractions = np.array([0, 1, 2, 0x3504F3, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF], np.uint32)
    magnitudes = (np.arange(256, dtype=np.uint32)[:, None] << 23 | fractions).ravel()
    yield np.concatenate([magnitudes, magnitudes | np.uint32(1 << 31)]).view(np.float32)
    yield rng.integers(0, 1 << 32, SAMPLES, np.uint64).astype(np.uint32).view(np.float32)
    yield np.concatenate([rng.normal(0, s, SAMPLES // 4) for s in (0.3, 3, 10, 60)]).astype(np.float32)


def worst(formula: Formula, blocks: Iterator[Array]) -> tuple[float, float]:
    """The greatest error in units of 2^-23 and the argument where it occurs; infinite where a NaN, an infinity or a
    zero's sign is not the language's."""
    greatest, at = -1.0, float("nan")
    with np.errstate(all="ignore"):
        for x in blocks:
            error = errors(
                np.asarray(evaluate_formula(formula, x)),
                np.asarray(call(formula.function, [x.astype(np.float64)], F64)),
                formula.flushed,
                moved(formula, x),
            )
            k = int(np.argmax(error))
            if error[k] > greatest:
                greatest, at = float(error[k]), float(x[k])
    return greatest, at


def moved(formula: Formula, x: Array) -> Array | float:
    """How far the results for arguments at the ends of what they may be off are from the exact one."""
    if not formula.argument_ulp:
        return 0.0
    wide = x.astype(np.float64)
    middle, *ends = (
        np.asarray(call(formula.function, [wide * (1 + s * formula.argument_ulp * UNIT)], F64)) for s in (0, 1, -1)
    )
    apart: Array = np.nan_to_num(np.maximum(*(np.abs(end - middle) for end in ends)), nan=0.0, posinf=0.0)
    return apart


def errors(found: Array, exact: Array, flushed: bool = False, beside: Array | float = 0.0) -> Array:
    """Errors of f32 numbers in units of 2^-23 of the exact result, without an absolute one of `beside`; with `flushed`,
    a subnormal one may be 0 of its sign."""
    rounded = exact.astype(np.float32)
    unit = np.maximum(UNIT * np.abs(exact), LEAST)
    error = np.maximum(0.0, np.abs(found.astype(np.float64) - exact) - beside) / unit
    if flushed:
        zero = (np.abs(exact) < NORMAL) & (found == 0) & (np.signbit(found) == np.signbit(exact))
        error = np.where(zero, 0.0, error)
    special = ~np.isfinite(rounded) | (exact == 0)
    same = (found == rounded) & (np.signbit(found) == np.signbit(rounded)) | (np.isnan(found) & np.isnan(rounded))
    # Where one of both is infinite, and the other the greatest number or the next, they are as near as their distance.
    border = (np.isinf(rounded) != np.isinf(found)) & np.isfinite(exact)
    wide = found.astype(np.float64)
    near = np.abs(np.where(np.isinf(wide), np.copysign(2.0**128, wide), wide) - exact) / 2.0**104
    return np.where(border, near, np.where(special, np.where(same, 0.0, np.inf), error))
