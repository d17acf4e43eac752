# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Attention of several heads: two products with the softmax of whole rows between them, and the causal form."""


def attention(Q: t[h, n, d], K: t[h, n, d], V: t[h, n, d], O: t[h, n, d], *, h=192, n=512, d=64, t="f32"):
    """O = softmax(Q Kᵀ / sqrt(d)) V for each head, all keys."""
    S: f32[h, n, n]
    M: f32[h, n]
    Z: f32[h, n]
    P: t[h, n, n]
    R: f32[h, n, d]
    for b, i, j in grid(h, n, n):
        S[b, i, j] = 0
        for e in range(d):
            S[b, i, j] += f32(Q[b, i, e]) * f32(K[b, j, e])
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(n):
            M[b, i] = max(M[b, i], S[b, i, j] * 0.125)
        Z[b, i] = 0
        for j in range(n):
            Z[b, i] += exp(S[b, i, j] * 0.125 - M[b, i])
        for j in range(n):
            P[b, i, j] = t(exp(S[b, i, j] * 0.125 - M[b, i]) / Z[b, i])
    for b, i, e in grid(h, n, d):
        R[b, i, e] = 0
        for j in range(n):
            R[b, i, e] += f32(P[b, i, j]) * f32(V[b, j, e])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = t(R[b, i, e])


def causal(Q: f32[h, n, d], K: f32[h, n, d], V: f32[h, n, d], O: f32[h, n, d], *, h=8, n=512, d=64):
    """As `attention`, of the keys up to each query's own."""
    S: f32[h, n, n]
    M: f32[h, n]
    Z: f32[h, n]
    for b, i in grid(h, n):
        for j in range(i + 1):
            S[b, i, j] = 0
            for e in range(d):
                S[b, i, j] += Q[b, i, e] * K[b, j, e]
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(i + 1):
            M[b, i] = max(M[b, i], S[b, i, j] * 0.125)
        Z[b, i] = 0
        for j in range(i + 1):
            Z[b, i] += exp(S[b, i, j] * 0.125 - M[b, i])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = 0
        for j in range(i + 1):
            O[b, i, e] += exp(S[b, i, j] * 0.125 - M[b, i]) * V[b, j, e]
    for b, i, e in grid(h, n, d):
        O[b, i, e] = O[b, i, e] / Z[b, i]


def flash(Q: f32[n, d], K: f32[n, d], V: f32[n, d], O: f32[n, d], *, n=512, d=64):
    """One head with a running maximum and sum: state that each key carries to the next."""
    M: f32[n]
    Z: f32[n]
    S: f32[n, n]
    N: f32[n, n]
    for i in range(n):
        M[i] = -3.0e38
        Z[i] = 0
        for e in range(d):
            O[i, e] = 0
        for j in range(n):
            S[i, j] = 0
            for e in range(d):
                S[i, j] += Q[i, e] * K[j, e]
            N[i, j] = max(M[i], S[i, j] * 0.125)
            Z[i] = Z[i] * exp(M[i] - N[i, j]) + exp(S[i, j] * 0.125 - N[i, j])
            for e in range(d):
                O[i, e] = O[i, e] * exp(M[i] - N[i, j]) + exp(S[i, j] * 0.125 - N[i, j]) * V[j, e]
            M[i] = N[i, j]
        for e in range(d):
            O[i, e] = O[i, e] / Z[i]
