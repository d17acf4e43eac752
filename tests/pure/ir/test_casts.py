"""Conversions of the oracle between floats: what nothing rounds is taken as it is, without a step for each element."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.numerics import cast

F32 = DTYPES["f32"]
NUMBERS = np.array([1.0, -0.0, np.inf, np.nan, 1 + 2.0**-23, 1e-45, 70000.0], np.float32)


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "e4m3"])
def test_to_f32_from_f32_and_narrower_is_no_copy(name: str) -> None:
    assert cast(NUMBERS, DTYPES[name], F32) is NUMBERS
    (number,) = NUMBERS[:1]
    assert cast(number, DTYPES[name], F32) == 1.0


def test_others_are_rounded() -> None:
    doubles = np.array([1 + 2.0**-24 + 2.0**-50, 1e300, -1e-300])
    rounded = cast(doubles, DTYPES["f64"], F32)
    assert rounded.dtype == np.float32
    np.testing.assert_array_equal(rounded, np.array([1 + 2.0**-23, np.inf, -0.0], np.float32))
    np.testing.assert_array_equal(cast(NUMBERS[-3:], F32, DTYPES["f16"]), np.array([1.0, 0.0, np.inf], np.float32))
