"""Products of blocks with scales, as plain loops have them: the answers of interpreter and instructions, bit for bit,
for every byte of a scale. The oracle is numpy with ml_dtypes' types, and knows neither language nor instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.match.computes import CATALOGUE, execute

from autosched.ir import parse, run
from autosched.ir.dtypes import DTYPES
from autosched.tensorize import match
from autosched.tensorize.explanation.fix import with_fix

TEXT = """
def f(A: {t}[m, k], S: {s}[m, k // {g}], B: {t}[k, n], T: {s}[k // {g}, n], C: f32[m, n], *, m={m}, n={n}, k={k}):
    {said}
    for i, j in grid(m, n):
        C[i, j] = 0
        {loops}
            C[i, j] += (f32(A[i, {p}]) * f32(S[i, {h}])) * (f32(B[{p}, j]) * f32(T[{h}, j]))
"""


@dataclass(frozen=True)
class Format:
    """Elements, scales, and how many elements have one; an instruction and its depth, which may be one group."""

    element: str
    scale: str
    group: int
    intrinsic: str
    depth: int


FORMATS = {
    "mxfp8": Format("e4m3", "e8m0", 32, "cuda/mma.m16n8k32.e4m3.e4m3.f32.mxf8f6f4", 32),
    "mxfp6": Format("e3m2", "e8m0", 32, "cuda/mma.m16n8k32.e3m2.e3m2.f32.mxf8f6f4", 32),
    "mxfp4": Format("e2m1", "e8m0", 32, "cuda/mma.m16n8k64.e2m1.e2m1.f32.mxf4", 64),
    "nvfp4": Format("e2m1", "e4m3", 16, "cuda/mma.m16n8k64.e2m1.e2m1.f32.nvf4", 64),
    "mxfp8 on AMD": Format("e4m3", "e8m0", 32, "hip/mfma.scale.f32.16x16x128.e4m3.e4m3", 128),
}
M, N = 16, 16
STEP = 16
"""Bytes from one data set to the next: those of A rise, those of B fall, so that products are of all sizes."""


def elements(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Any pattern of the type but NaN."""
    dtype = DTYPES[name]
    found = rng.integers(0, 1 << dtype.bits, shape).astype(np.uint8).view(dtype.numpy)
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(found.astype(np.float32)), np.zeros((), dtype.numpy), found)


def scales(of: Format, shape: tuple[int, ...], first: int) -> Any:
    """Bytes in turn from the first on; e4m3 without signs."""
    every = (np.arange(int(np.prod(shape))) + first) % (128 if of.scale == "e4m3" else 256)
    return every.astype(np.uint8).reshape(shape).view(DTYPES[of.scale].numpy)


def arrays(of: Format, k: int, seed: int, sparse: bool) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = elements(of.element, (M, k), rng)
    if sparse:  # one element a row, so that no order of a sum makes a difference
        kept = rng.integers(0, k, M)
        a = np.where(np.arange(k) == kept[:, None], a, np.zeros((), a.dtype))
    groups = k // of.group
    return {
        "A": a, "S": scales(of, (M, groups), STEP * seed),
        "B": elements(of.element, (k, N), rng), "T": scales(of, (groups, N), 120 - STEP * seed),
    }  # fmt: skip


def expected(of: Format, given: dict[str, Any], k: int) -> Any:
    """The loops' own sum, term after term."""
    a, s, b, t = (given[n].astype(np.float32) for n in "ASBT")
    total = np.zeros((M, N), np.float32)
    for p in range(k):
        g = p // of.group
        total = total + (a[:, p] * s[:, g])[:, None] * (b[p] * t[g])[None, :]
    return total


def same(got: Any, want: Any) -> bool:
    return bool(np.array_equal(np.where(got == 0, 0, got), np.where(want == 0, 0, want), equal_nan=True))


def program(of: Format, k: int, said: str) -> Any:
    g, apart = of.group, of.depth == of.group  # a loop over the groups, where an instruction takes one of them
    loops = f"for h, q in grid(k // {g}, {g}):" if apart else "for p in range(k):"
    at = {"p": f"{g} * h + q", "h": "h"} if apart else {"p": "p", "h": f"p // {g}"}
    return parse(TEXT.format(t=of.element, s=of.scale, g=g, m=M, n=N, k=k, said=said, loops=loops, **at))


def assumed(of: Format) -> str:
    return "assume(0 <= S)\n    assume(0 <= T)" if of.scale == "e4m3" else '"""Scales have no sign."""'


@pytest.mark.parametrize("name", FORMATS)
def test_the_interpreter_is_right_for_every_byte(name: str) -> None:
    of = FORMATS[name]
    k, seen = of.depth, set[int]()
    for seed in range(256 // STEP):
        given = arrays(of, k, seed, sparse=False)
        with np.errstate(all="ignore"):
            found, want = run(program(of, k, ""), given)["C"], expected(of, given, k)
        assert np.array_equal(found.view(np.uint32)[want == want], want.view(np.uint32)[want == want])
        assert np.isnan(found[want != want]).all()
        seen |= set(given["S"].view(np.uint8).ravel().tolist()) | set(given["T"].view(np.uint8).ravel().tolist())
    assert seen == set(range(256 if of.scale == "e8m0" else 128))


@pytest.mark.sampled("mxfp8", "mxfp6", "mxfp4", "nvfp4")
@pytest.mark.parametrize("name", FORMATS)
def test_its_instruction_computes_the_same(name: str) -> None:
    of = FORMATS[name]
    loops = program(of, of.depth, assumed(of))
    (found,) = match(loops, [CATALOGUE[of.intrinsic]])
    assert found.verdict == "match", found.reason
    chosen = found.ranked[0]
    assert chosen.padding["k"][0] == of.depth
    ends = set[int]()
    for seed in (0, 15):
        given = arrays(of, of.depth, seed, sparse=True)
        with np.errstate(all="ignore"):
            want = expected(of, given, of.depth)
        got = execute(chosen, given | {"C": np.zeros((M, N), np.float32)})
        assert same(got, want)
        ends |= {0, 255} & set(given["S"].view(np.uint8).ravel().tolist())
    assert ends == ({0, 255} if of.scale == "e8m0" else {0})


def test_bytes_that_are_shifted_are_no_scales() -> None:
    """`u32(s) << 23` makes 0 of the byte 0, and an infinity of 255."""
    given = {"S": np.array([0, 1, 254, 255], np.uint8)}
    shifted = parse("def f(S: u8[4], W: f32[4]):\n    for i in range(4):\n        W[i] = bits_f32(u32(S[i]) << 23)\n")
    right = parse("def f(S: e8m0[4], W: f32[4]):\n    for i in range(4):\n        W[i] = f32(S[i])\n")
    a = run(shifted, given)["W"]
    b = run(right, {"S": given["S"].view(ml_dtypes.float8_e8m0fnu)})["W"]
    assert a.tolist() == [0.0, 2.0**-126, 2.0**127, float("inf")]
    assert b.tolist()[:3] == [2.0**-127, 2.0**-126, 2.0**127]
    assert np.isnan(b[3])


@pytest.mark.slow
def test_scales_of_any_sign_are_told_what_to_assume() -> None:
    of = FORMATS["nvfp4"]
    (found,) = match(program(of, of.depth, ""), [CATALOGUE[of.intrinsic]])
    reason = with_fix(found).reason
    assert reason is not None
    assert (reason.code, reason.verified) == ("BODY_DIFFERS", True)
    assert reason.fix == "add assume(0 <= S) and assume(0 <= T)"
    (stated,) = match(program(of, of.depth, assumed(of)), [CATALOGUE[of.intrinsic]])
    body = next(o for o in stated.mappings[0].certificate.obligations if o.part == "body")
    assert body.statement.endswith("as S, T >= 0")
