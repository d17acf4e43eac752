# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Attention without a softmax: queries meet the sum of products of keys and values.

    autosched rewrite examples/fused/linear_attention.py:linear_attention_causal
    autosched tune examples/fused/linear_attention.py:linear_attention
"""


def linear_attention(Q: t[h, n, d], K: t[h, n, d], V: t[h, n, e], O: t[h, n, e],
                     *, h=4, n=64, d=16, e=16, t="f32", acc="f32"):
    """f(Q) f(K)ᵀ V, its rows divided by the sums of f(Q) f(K)ᵀ; f(x) = x + 1 for x > 0, else exp(x)."""
    F: acc[h, n, d]
    G: acc[h, n, d]
    S: acc[h, n, n]
    Z: acc[h, n]
    A: acc[h, n, e]
    for b, i, p in grid(h, n, d):
        F[b, i, p] = acc(Q[b, i, p]) + 1 if Q[b, i, p] > 0 else exp(acc(Q[b, i, p]))
        G[b, i, p] = acc(K[b, i, p]) + 1 if K[b, i, p] > 0 else exp(acc(K[b, i, p]))
    for b, i, j in grid(h, n, n):
        S[b, i, j] = 0
        for p in range(d):
            S[b, i, j] += F[b, i, p] * G[b, j, p]
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(n):
            Z[b, i] += S[b, i, j]
    for b, i, c in grid(h, n, e):
        A[b, i, c] = 0
        for j in range(n):
            A[b, i, c] += S[b, i, j] * acc(V[b, j, c])
    for b, i, c in grid(h, n, e):
        O[b, i, c] = t(A[b, i, c] / Z[b, i])


def linear_attention_causal(Q: t[h, n, d], K: t[h, n, d], V: t[h, n, e], O: t[h, n, e],
                            *, h=4, n=64, d=16, e=16, t="f32", acc="f32"):
    """tril(Q Kᵀ) V: query i meets the keys up to i."""
    S: acc[h, n, n]
    A: acc[h, n, e]
    for b, i, j in grid(h, n, n):
        S[b, i, j] = 0
        for p in range(d):
            S[b, i, j] += acc(Q[b, i, p]) * acc(K[b, j, p])
    for b, i, c in grid(h, n, e):
        A[b, i, c] = 0
        for j in range(i + 1):
            A[b, i, c] += S[b, i, j] * acc(V[b, j, c])
    for b, i, c in grid(h, n, e):
        O[b, i, c] = t(A[b, i, c])
