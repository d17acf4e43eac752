"""A program that copies scales (e8m0) and makes some of bytes, with what it gives for every byte."""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np

from autosched.ir import parse

PROGRAM = parse("""
def f(S: e8m0[16, 16], U: u8[256], T: e8m0[16, 16], V: e8m0[256]):
    for i, j in grid(16, 16):
        T[j, i] = S[i, j]
    for i in range(256):
        V[i] = bits_e8m0(U[i] ^ 1)
""")
_BYTES = np.arange(256).astype(np.uint8)
INPUTS = {"S": _BYTES.reshape(16, 16).view(ml_dtypes.float8_e8m0fnu), "U": _BYTES}


def assert_written(found: Mapping[str, np.ndarray]) -> None:
    """The outputs are right, byte for byte."""
    assert np.array_equal(found["T"].view(np.uint8), _BYTES.reshape(16, 16).T)
    assert np.array_equal(found["V"].view(np.uint8), _BYTES ^ 1)
