"""Merged dimensions have the offsets of the subscripts they came from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.plans import plans_of

from autosched.codegen.analysis.access import classify, strides
from autosched.codegen.tree.kernel import Lane
from autosched.ir import parse
from autosched.logic import Int, Var, evaluate, merge_dimensions

P, X = Var("p"), Var("x")


def offset(index: tuple[Int, ...], shape: tuple[int, ...], p: object, x: int) -> object:
    env = {"p": p, "x": x}
    return sum(np.asarray(evaluate(i, env)) * s for i, s in zip(index, strides(shape), strict=True))


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_offsets_stay(n: int, m: int, factor: int, constant: int, deep: bool) -> None:
    outer = X * factor + P // n + constant - 1
    index: tuple[Int, ...] = (X, outer, P % n)
    shape = (4, m, n)
    if deep:
        index, shape = (X + P // (n * m), (P // n) % m, P % n), (4, m, n)
    merged, sizes = merge_dimensions(index, shape)
    positions = np.arange(40)
    for x in (0, 1, 3):
        assert np.array_equal(offset(index, shape, positions, x), offset(merged, sizes, positions, x))
    assert len(merged) < 3


def test_other_remainders_stay_apart() -> None:
    for index in ((P // 3, P % 4), (P // 4, P % 3), (X, P % 3), (P // 3 * 2, P % 3), (X - P // 3, P % 3)):
        assert merge_dimensions(index, (9, 3)) == (index, (9, 3))


def test_fused_lanes_are_contiguous() -> None:
    lane = Lane("e", 16)
    position = Var("t") * 16 + Var("e")
    assert classify((Var("c"), position // 7, position % 7), (4, 9, 7), lane).kind == "contiguous"
    assert classify((Var("c"), position // 7, position % 7), (4, 9, 8), lane).kind != "contiguous"


STEM = """
def stem(X: u8[h, w, ci], W: const[s8[k, k, ci, co]], Y: s32[ho, wo, co],
         *, h=5, w=9, ci=3, co=17, k=3, pad=1, stride=2):
    ho = (h + 2 * pad - k) // stride + 1
    wo = (w + 2 * pad - k) // stride + 1
    for y, x, o in grid(ho, wo, co):
        Y[y, x, o] = 0
        for r, s, c in grid(k, k, ci):
            if 0 <= y * stride + r - pad < h and 0 <= x * stride + s - pad < w:
                Y[y, x, o] += s32(X[y * stride + r - pad, x * stride + s - pad, c]) * s32(W[r, s, c, o])
"""
POINTWISE = """
def pointwise(X: f32[ci, h, w], W: const[f32[co, ci]], Y: f32[co, h, w], *, h=5, w=7, ci=5, co=6):
    for o, y, x in grid(co, h, w):
        Y[o, y, x] = 0
        for c in range(ci):
            Y[o, y, x] += X[c, y, x] * W[o, c]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("text", "fused", "operand"), [(STEM, "k←s.c", "pack_a"), (POINTWISE, "i←y.x", "pack_b")])
def test_fused_axes_are_loaded_where_they_lie(text: str, fused: str, operand: str) -> None:
    program = parse(text)
    plans = plans_of(program, threads=2, only=("x86/vpdpbusd.zmm", "x86/vfmadd.f32.zmm"))
    plan = next(p for p in plans if fused in p.name)
    decision = plan.space.decision(operand)
    assert "direct" in decision.labels
    ids = plan.space.enumerate().ids
    chosen = plan.space.values(ids)[operand]
    rng = np.random.default_rng(1)
    rows = [int(rng.choice(ids[chosen == v])) for v in decision.domain for _ in range(2)]
    assert disagreement(plan, rows, expect(program)) is None
