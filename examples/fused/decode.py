# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Attention of one new token in each of `b` sequences to its cache, of which L[s] tokens are filled.

    autosched rewrite examples/fused/decode.py:attention_decode --parts 8    # each part of the cache apart
    autosched tune examples/fused/decode.py:mla_decode -D l=1024
"""


def attention_decode(Q: t[b, h, d], K: t[b, hk, l, d], V: t[b, hk, l, d], L: s32[b], O: t[b, h, d],
                     *, b=2, h=8, l=512, d=16, group=4, t="f32", acc="f32"):
    """softmax(Q Kᵀ / sqrt d) V; `group` heads of queries share a head of keys and values."""
    hk = h // group
    assume(1 <= L <= l)
    S: acc[b, h, l]
    M: acc[b, h]
    Z: acc[b, h]
    A: acc[b, h, d]
    for s, i, j in grid(b, h, l):
        S[s, i, j] = 0
        for p in range(d):
            S[s, i, j] += acc(Q[s, i, p]) * acc(K[s, i // group, j, p])
    for s, i in grid(b, h):
        M[s, i] = -inf
        for j in range(l):
            x = S[s, i, j] * rsqrt(acc(d)) if s32(j) < L[s] else -inf
            M[s, i] = max(M[s, i], x)
    for s, i in grid(b, h):
        Z[s, i] = 0
        for j in range(l):
            x = S[s, i, j] * rsqrt(acc(d)) if s32(j) < L[s] else -inf
            Z[s, i] += exp(x - M[s, i])
    for s, i, e in grid(b, h, d):
        A[s, i, e] = 0
        for j in range(l):
            x = S[s, i, j] * rsqrt(acc(d)) if s32(j) < L[s] else -inf
            A[s, i, e] += exp(x - M[s, i]) * acc(V[s, i // group, j, e])
    for s, i, e in grid(b, h, d):
        O[s, i, e] = t(A[s, i, e] / Z[s, i])


def mla_decode(Q: t[b, h, c], R: t[b, h, r], C: t[b, l, c], T: t[b, l, r], L: s32[b], scale: acc, O: t[b, h, c],
               *, b=2, h=8, l=256, c=32, r=8, t="f32", acc="f32"):
    """softmax((Q Cᵀ + R Tᵀ) scale) C: all heads share a cache; its latent part C is keys and values."""
    assume(1 <= L <= l)
    S: acc[b, h, l]
    U: acc[b, h, l]
    M: acc[b, h]
    Z: acc[b, h]
    A: acc[b, h, c]
    for s, i, j in grid(b, h, l):
        S[s, i, j] = 0
        for p in range(c):
            S[s, i, j] += acc(Q[s, i, p]) * acc(C[s, j, p])
    for s, i, j in grid(b, h, l):
        U[s, i, j] = 0
        for p in range(r):
            U[s, i, j] += acc(R[s, i, p]) * acc(T[s, j, p])
    for s, i in grid(b, h):
        M[s, i] = -inf
        for j in range(l):
            x = (S[s, i, j] + U[s, i, j]) * scale if s32(j) < L[s] else -inf
            M[s, i] = max(M[s, i], x)
    for s, i in grid(b, h):
        Z[s, i] = 0
        for j in range(l):
            x = (S[s, i, j] + U[s, i, j]) * scale if s32(j) < L[s] else -inf
            Z[s, i] += exp(x - M[s, i])
    for s, i, e in grid(b, h, c):
        A[s, i, e] = 0
        for j in range(l):
            x = (S[s, i, j] + U[s, i, j]) * scale if s32(j) < L[s] else -inf
            A[s, i, e] += exp(x - M[s, i]) * acc(C[s, j, e])
    for s, i, e in grid(b, h, c):
        O[s, i, e] = t(A[s, i, e] / Z[s, i])
