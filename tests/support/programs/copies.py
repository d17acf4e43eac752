"""Programs whose operands are worth copying in another shape, and rows that do so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from autosched.tiling.plans.plan import Plan

NCHW = """
def conv_nchw(X: t[ci, h, w], W: const[u[co, ci, kh, kw]], Y: acc[co, ho, wo],
              *, h=3, w=19, ci=6, co=18, kh=3, kw=3, pad=1, t="u8", u="s8", acc="s32"):
    ho = h + 2 * pad - kh + 1
    wo = w + 2 * pad - kw + 1
    for o, y, x in grid(co, ho, wo):
        Y[o, y, x] = 0
        for c, r, s in grid(ci, kh, kw):
            if 0 <= y + r - pad < h and 0 <= x + s - pad < w:
                Y[o, y, x] += acc(X[c, y + r - pad, x + s - pad]) * acc(W[o, c, r, s])
"""
TRANSPOSED = """
def transposed(A: t[k, m], B: u[k, n], C: acc[m, n], *, m=7, n=37, k=10, t="u8", u="s8", acc="s32"):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[p, i]) * acc(B[p, j])
"""
BATCH = """
def batch(A: s8[k, z, m], B: u8[z, k, n], C: s32[z, m, n], *, z=2, m=5, n=18, k=9):
    for b, i, j in grid(z, m, n):
        C[b, i, j] = 0
        for p in range(k):
            C[b, i, j] += s32(A[p, b, i]) * s32(B[b, p, j])
"""
DEPTHWISE = """
def depthwise(X: t[h, w, c], W: const[u[k, k, c]], Y: acc[h, w, c], *, h=3, w=5, c=18, k=3, t="u8", u="s8", acc="s32"):
    for y, x, o in grid(h, w, c):
        Y[y, x, o] = 0
        for r, s in grid(k, k):
            if 0 <= y + r - 1 < h and 0 <= x + s - 1 < w:
                Y[y, x, o] += acc(X[y + r - 1, x + s - 1, o]) * acc(W[r, s, o])
"""
STRIDED = """
def strided(X: f32[c, h, w], W: const[f32[c, k, k]], Y: f32[c, ho, wo], *, c=2, h=5, w=69, k=3):
    ho = (h - k) // 2 + 1
    wo = (w + 2 - k) // 2 + 1
    for o, y, x in grid(c, ho, wo):
        Y[o, y, x] = 0
        for r, s in grid(k, k):
            if 0 <= x * 2 + s - 1 < w:
                Y[o, y, x] += X[o, y * 2 + r, x * 2 + s - 1] * W[o, r, s]
"""
TAPS = """
def taps(X: t[c, h, w], W: const[u[c, k, k]], Y: acc[c, ho, wo],
         *, c=3, h=5, w=21, k=3, stride=2, t="u8", u="s8", acc="s32"):
    ho = (h + 2 - k) // stride + 1
    wo = (w + 2 - k) // stride + 1
    for o, y, x in grid(c, ho, wo):
        Y[o, y, x] = 0
        for r, s in grid(k, k):
            if 0 <= y * stride + r - 1 < h and 0 <= x * stride + s - 1 < w:
                Y[o, y, x] += acc(X[o, y * stride + r - 1, x * stride + s - 1]) * acc(W[o, r, s])
"""
UNPACKED = TAPS.replace("const[u[c, k, k]]", "u[c, k, k]")
FLOATS = {"t": "bf16", "u": "bf16", "acc": "f32"}


def rows_with(plan: Plan, kind: str, most: int = 4) -> Iterator[int]:
    """Legal rows in which an operand is read from a copy of this kind, a few for each operand."""
    rng = np.random.default_rng(0)
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    for d in plan.space.decisions:
        if kind in d.labels and "pack_" in d.name:
            chosen = ids[values[d.name] == d.domain[d.labels.index(kind)]]
            yield from (int(r) for r in rng.choice(chosen, size=min(most, len(chosen)), replace=False))
