"""Every mapping that is reported, executed tile by tile, computes what the program computes."""

from __future__ import annotations

import pytest
from support.match.computes import CATALOGUE, check, made_up

from autosched.ir import parse
from autosched.tensorize import match

CASES = {
    "matmul": "C[i, j] += s32(A[i, p]) * s32(B[p, j])",
    "commuted": "C[i, j] += s32(B[p, j]) * s32(A[i, p])",
    "transposed": "C[j, i] += s32(A[p, i]) * s32(B[j, p])",
    "reversed": "C[i, j] += s32(A[i, 6 - p]) * s32(B[6 - p, j])",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "intrinsic", ["x86/vpdpbusd.ymm", "x86/vpdpbusds.ymm", "cuda/dp4a.u8.s8", "portable/mac.u8.s8.s32.v4"]
)
@pytest.mark.parametrize("init", ["C[i, j] = 0", ""])
def test_integer_matmuls(name: str, intrinsic: str, init: str) -> None:
    out = CASES[name].split(" +=")[0]
    head = f"        {out} = 0\n" if init else ""
    program = parse(
        "def f(A: u8[7, 7], B: s8[7, 7], C: s32[7, 7]):\n    for i, j in grid(5, 7):\n"
        + head
        + f"        for p in range(7):\n            {CASES[name]}\n"
    )
    count = check(program, CATALOGUE[intrinsic], 1).mapping_count
    clamps_live_values = "dpbusds" in intrinsic and not init
    assert count == (1 if "dp4a" in intrinsic else 3), "live values make every mapping conditional, not fewer"
    if clamps_live_values:
        (found,) = match(program, [CATALOGUE[intrinsic]])
        assert found.verdict == "conditional"


SQUARE = """
def m(a: u8[4, 3], b: s8[3, 2], c: s32[4, 2]):
    for i, j, k in grid(4, 2, 3):
        c[i, j] += s32(a[i, k]) * s32(b[k, j])
"""
CONV = """
def conv(X: u8[1, h, w, ci], W: s8[kh, kw, ci, co], Y: s32[1, ho, wo, co],
         *, h=3, w=3, ci=2, co=2, kh=3, kw=2, stride=1, pad=1):
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    for b, y, x, o in grid(1, ho, wo, co):
        Y[b, y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            if 0 <= y * stride + r - pad < h and 0 <= x * stride + s - pad < w:
                Y[b, y, x, o] += s32(X[b, y * stride + r - pad, x * stride + s - pad, c]) * s32(W[r, s, c, o])
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_with_guards(stride: int) -> None:
    program = parse(CONV, sizes={"stride": stride})
    square = made_up(SQUARE)
    assert check(program, square, 2, most=12).mapping_count == 49
    assert check(program, CATALOGUE["x86/vpdpbusd.ymm"], 3, most=6).mapping_count == 15 * 7


GATHER = """
def f(A: u8[3, 5], idx: s32[4], B: s8[5, 3], C: s32[4, 3]):
    for i, j in grid(4, 3):
        for k in range(5):
            C[i, j] += s32(A[idx[i], k]) * s32(B[k, j])
"""
TRIANGLE = """
def f(A: u8[6, 6], B: s8[6, 3], C: s32[6, 3]):
    for i, j in grid(6, 3):
        for k in range(i + 1):
            C[i, j] += s32(A[i, k]) * s32(B[k, j])
"""
BAND = """
def f(A: u8[6, 6], B: s8[6, 6], C: s32[6, 6]):
    for i, j in grid(6, 6):
        for k in range(6):
            if i + j <= 5:
                C[i, j] += s32(A[i, k]) * s32(B[k, j])
"""


def test_gather_and_triangle() -> None:
    gather = parse(GATHER)
    assert check(gather, CATALOGUE["x86/vpdpbusd.ymm"], 4).mapping_count == 3
    triangle = parse(TRIANGLE)
    square = made_up(SQUARE)
    assert check(triangle, square, 5).mapping_count == 1
    band = parse(BAND)
    assert check(band, square, 6).mapping_count == 1


def test_a_value_that_goes_round_through_three_stages() -> None:
    """`T` lies between two stages of which the first reads what the last wrote a turn before: no loop of its own."""
    text = (
        "def f(A: s32[2, 8], C: s32[8]):\n    S: s32[2, 8]\n    T: s32[2, 8]\n    for q, p in grid(2, 8):\n"
        "        S[q, p] = A[q, p] + C[p]\n        T[q, p] = S[q, p] + A[q, p]\n        C[p] = T[q, p]\n"
    )
    added = made_up("def m(a: s32[4], b: s32[4], c: s32[4]):\n for i in range(4):\n  c[i] = a[i] + b[i]")
    (found,) = match(parse(text), [added], stages=["T"])
    assert found.verdict == "no"
    assert found.reason is not None
    assert found.reason.code == "ALIAS"
    kept = text.replace("+ C[p]", "+ A[q, p]")
    (found,) = match(parse(kept), [added], stages=["T"])
    assert found.verdict == "match"
