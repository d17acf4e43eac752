"""A scale of OCP MX is a number or a byte, and the program says which."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from autosched import ir
from autosched.errors import UsageError

SUMS = """
def sums(S: e8m0[n], C: {t}[n], *, n=4):
    for i in range(n):
        C[i] = {value}
"""


def test_an_integer_is_made_of_the_number_and_not_of_the_byte() -> None:
    program = ir.parse(SUMS.format(t="s32", value="s32(S[i])"))
    codes = np.array([120, 127, 128, 137], np.uint8)
    found = ir.run(program, {"S": codes.view(ml_dtypes.float8_e8m0fnu)})
    np.testing.assert_array_equal(found["C"], [0, 1, 2, 1024])


def test_bytes_are_viewed_and_not_converted() -> None:
    program = ir.parse(SUMS.format(t="f32", value="f32(S[i])"))
    codes = np.array([120, 126, 127, 128], np.uint8)
    with pytest.raises(UsageError) as raised:
        ir.run(program, {"S": codes})
    assert raised.value.hint == "read its bytes as scales: .view('float8_e8m0fnu')"
    found = ir.run(program, {"S": codes.view(ml_dtypes.float8_e8m0fnu)})
    np.testing.assert_array_equal(found["C"], np.exp2(codes.astype(np.float64) - 127))
