"""A fused product and sum of doubles, of many at once, has the bits of exact arithmetic on each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.evaluate import _fma_exact, call

F64 = DTYPES["f64"]
COUNT = 4000


def doubles(rng: np.random.Generator, spread: int) -> Any:
    """All 53 bits, and exponents far apart."""
    return rng.integers(-(2**53), 2**53, COUNT).astype(np.float64) * 2.0 ** rng.integers(-spread, spread, COUNT)


def cancelling(rng: np.random.Generator) -> Any:
    a, b = doubles(rng, 30), doubles(rng, 30)
    return a, b, -(a * b)


def near_ties(rng: np.random.Generator) -> Any:
    """Half a last place of the sum less what only 60 bits more would show."""
    x = rng.choice([1.0, -1.0], COUNT) * 2.0 ** rng.integers(-31, -26, COUNT)
    return 1 + x, 0.5 - x / 2, rng.integers(2**52, 2**53, COUNT) * 1.0


def tiny(rng: np.random.Generator) -> Any:
    """What a product is rounded by is below the least double."""
    return doubles(rng, 5) * 2.0**-570, doubles(rng, 5) * 2.0**-570, doubles(rng, 5) * 2.0**-1070


def scattered(rng: np.random.Generator) -> Any:
    return doubles(rng, 60), doubles(rng, 60), doubles(rng, 160)


def whole(rng: np.random.Generator) -> Any:
    """Also zeros of both signs."""
    return tuple(rng.integers(-3, 4, COUNT) * rng.choice([1.0, -1.0], COUNT) for _ in range(3))


def any_bits(rng: np.random.Generator) -> Any:
    """Subnormals, infinities, NaN, and what over- and underflows."""
    return tuple(rng.integers(0, 2**64, COUNT, np.uint64).view(np.float64) for _ in range(3))


@pytest.mark.parametrize("draw", [cancelling, near_ties, tiny, scattered, whole, any_bits])
def test_bits_are_those_of_exact_arithmetic(draw: Any) -> None:
    a, b, c = draw(np.random.default_rng(0))
    with np.errstate(all="ignore"):
        want = np.array([_fma_exact(*each) for each in zip(a, b, c, strict=True)])
        got = call("fma", [a, b, c], F64)
    same = (got.view(np.int64) == want.view(np.int64)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), [(x[~same][0].hex()) for x in (a, b, c, got, want)]


def test_one_is_as_many() -> None:
    assert call("fma", [np.float64(3), np.float64(2), np.float64(-6)], F64) == 0
    rows = call("fma", [np.full((2, 1), 3.0), np.full(3, 2.0), np.float64(1)], F64)
    assert rows.tolist() == [[7.0] * 3] * 2
