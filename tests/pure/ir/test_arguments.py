"""Run-time scalars are taken as the numbers that they are, or refused."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from autosched.errors import UsageError
from autosched.ir import parse, run
from autosched.ir.arguments import GivenScalar, greatest
from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.numerics import round_float


def _float(dtype: str) -> GivenScalar:
    return GivenScalar("s", DTYPES[dtype])


@pytest.mark.parametrize(
    ("dtype", "given", "number"),
    [
        ("s8", -128, -128),
        ("s8", np.uint64(127), 127),
        ("s32", True, 1),
        ("s32", np.array(5, np.int16), 5),
        ("u64", 2**64 - 1, 2**64 - 1),
        ("b1", 1, 1),
        ("f32", 3, 3.0),
        ("f64", np.float16(0.5), 0.5),
        ("bf16", ml_dtypes.bfloat16(1.5), 1.5),
        ("f32", math.inf, math.inf),
    ],
)
def test_numbers_are_taken(dtype: str, given: Any, number: Any) -> None:
    argument = _float(dtype)
    assert argument.number(given) == argument.quick(given) == number
    assert type(argument.number(given)) is type(number)


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("s8", 128),
        ("f32", Decimal("1e400")),
        ("f64", Decimal("-1e400")),
        ("s8", np.int64(128)),
        ("b1", 2),
        ("u4", 16),
        ("s32", "1"),
        ("s32", b"1"),
        ("s32", np.str_("1")),
        ("s32", 1.5),
        ("s32", math.nan),
        ("s32", math.inf),
        ("s32", [1]),
        ("s32", np.array([1])),
        ("s32", np.array("1")),
        ("s32", 1j),
        ("f32", np.complex64(1)),
        ("f32", np.array(["1"])),
        ("f32", 10**400),
        ("f16", 1e5),
        ("e4m3", math.inf),
        ("e4m3", 1000),
        ("f32", None),
        ("f32", np.datetime64("2020-01-01")),
        ("f32", np.ma.masked),
    ],
)
def test_other_things_are_refused(dtype: str, given: Any) -> None:
    for take in (_float(dtype).number, _float(dtype).quick, _float(dtype).stored):
        with pytest.raises(UsageError, match="the scalar s is"):
            take(given)


@pytest.mark.parametrize("dtype", [n for n, d in DTYPES.items() if d.is_float and not d.scale])
def test_the_greatest_float_is_the_last_that_stays_finite(dtype: str) -> None:
    top = greatest(DTYPES[dtype])
    assert np.isfinite(round_float(np.float64(top), DTYPES[dtype]).astype(np.float64))
    with np.errstate(over="ignore"):
        beyond = np.float64(top) * (1 + 2.0**-20)
    past = round_float(beyond, DTYPES[dtype]).astype(np.float64)
    assert past == DTYPES[dtype].greatest if DTYPES[dtype].finite else not np.isfinite(past)
    assert float(_float(dtype).stored(1.5).astype(np.float64)) == 1.5


def test_an_assumption_narrows_the_range() -> None:
    program = parse("def f(s: f32, Y: f32[2]):\n    assume(-1 <= s <= 1)\n    for i in range(2):\n        Y[i] = s")
    argument = GivenScalar.of(program, "s")
    assert argument.number(1) == 1.0
    for outside in (1.5, math.nan, math.inf):
        with pytest.raises(UsageError, match="not in -1 to 1"):
            argument.number(outside)


def test_the_interpreter_asks_the_same() -> None:
    program = parse("def f(A: f32[2], s: f32, Y: f32[2]):\n    for i in range(2):\n        Y[i] = A[i] * s")
    a = np.ones(2, np.float32)
    for scalar in ("2", None, 1e300):
        with pytest.raises(UsageError, match="the scalar s is f32"):
            run(program, {"A": a}, {"s": scalar})
    with pytest.raises(UsageError, match="A is a masked array"):
        run(program, {"A": np.ma.array(a, mask=[True, False])}, {"s": 2.0})
