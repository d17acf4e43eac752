"""Quotients by a reciprocal are the division's, also at the ends of the range."""

from __future__ import annotations

import numpy as np

from autosched.codegen.lower.quotient import with_reciprocals
from autosched.ir.dtypes import DTYPES
from autosched.ir.evaluate import Frame
from autosched.ir.evaluate import value as evaluate
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


def test_ordinary_quotients_are_rounded_as_divisions_are() -> None:
    rng = np.random.default_rng(0)
    x, s = (np.exp(rng.normal(0, 12, 200_000)).astype(np.float32) * rng.choice([-1, 1], 200_000) for _ in range(2))
    x, s = x.astype(np.float32), s.astype(np.float32)
    assert (quotients(x, s) == x / s).all()


def test_zeros_and_infinities_are_as_divisions_have_them() -> None:
    some = np.asarray([0.0, -0.0, 1.0, -3.0, 1e-30, 3e38, np.inf, -np.inf, np.nan], np.float32)
    x, s = (a.reshape(-1) for a in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        want = x / s
    normal = ~(np.isfinite(want) & (want != 0) & (np.abs(want) < 2e-38)) & ~(np.abs(s) > 1e38) | np.isinf(s)
    np.testing.assert_array_equal(quotients(x, s)[normal], want[normal])
