"""Quotients by a reciprocal are the division's, also at the ends of the range."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.codegen.lower.scalar.quotient import with_reciprocals
from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.evaluate import Frame
from autosched.ir.oracle.evaluate import value as evaluate
from autosched.ir.value import Arith, Read, Value
from autosched.logic import Var

F32 = DTYPES["f32"]


def quotients(x: np.ndarray, s: np.ndarray) -> np.ndarray:
    """x / s, a row of its own for each, by what the lowering makes of it."""
    arrays = {"x": x, "s": s}
    numerator, divisor = Read("x", (Var("i"),), F32), Read("s", (Var("i"),), F32)

    def hold(what: str, of: Value) -> Value:
        arrays[what] = np.broadcast_to(at(of), x.shape)
        return Read(what, (Var("i"),), F32)

    def at(of: Value) -> np.ndarray:
        frame = Frame(arrays, {}, {"i": np.arange(len(x))}, {"i": (0, 0, len(x))}, 1)
        with np.errstate(all="ignore"):
            return np.asarray(evaluate(of, frame, None), np.float32)

    found = with_reciprocals(Arith("/", numerator, divisor, F32), lambda v: v == divisor, hold, hold)
    assert found != Arith("/", numerator, divisor, F32)
    return at(found)


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Equal, or no numbers both; a zero's sign does not count."""
    return bool(((got == want) | (np.isnan(got) & np.isnan(want))).all())


def drawn(low: float, high: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers of both signs between two powers of two."""
    return (np.exp2(rng.uniform(low, high, 50_000)) * rng.choice([-1, 1], 50_000)).astype(np.float32)


def test_ordinary_quotients_are_rounded_as_divisions_are() -> None:
    rng = np.random.default_rng(0)
    x, s = drawn(-50, 50, rng), drawn(-50, 50, rng)
    assert same(quotients(x, s), x / s)


@pytest.mark.parametrize("divisors", [(126, 127.9), (-128, -126), (-149, -128), (-20, 20), (-100, 100)])
@pytest.mark.parametrize("dividends", [(-149, -126), (-127, -98), (-100, -98), (-20, 20), (100, 127.9)])
def test_quotients_at_the_ends_of_the_range_are_too(
    divisors: tuple[float, float], dividends: tuple[float, float]
) -> None:
    rng = np.random.default_rng(1)
    x, s = drawn(*dividends, rng), drawn(*divisors, rng)
    with np.errstate(all="ignore"):
        want = x / s
    got, tiny = quotients(x, s), np.abs(x) < 2.0**-100
    assert same(got[~tiny], want[~tiny])
    number = tiny & np.isfinite(want)
    assert (np.abs(got[number] - want[number]) <= np.spacing(np.abs(want[number]))).all()
    assert same(got[tiny & ~number], want[tiny & ~number])


def test_zeros_and_infinities_are_as_divisions_have_them() -> None:
    some = np.asarray([0.0, -0.0, 1.0, -3.0, 1e-30, 1e-42, 3e38, np.inf, -np.inf, np.nan], np.float32)
    x, s = (a.reshape(-1) for a in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        assert same(quotients(x, s), x / s)
