# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Causal attention with other scores.

    autosched rewrite examples/fused/attention_scores.py:attention_alibi
    autosched tune examples/fused/attention_scores.py:attention_softcap
"""


def attention_alibi(Q: t[h, n, d], K: t[hk, l, d], V: t[hk, l, d], B: acc[h], O: t[h, n, d],
                    *, h=4, n=64, l=64, d=16, group=1, t="f32", acc="f32"):
    """softmax(Q Kᵀ / sqrt d + slope (j - i)) V; the last query sees all keys, and B holds a slope for each head."""
    hk = h // group
    S: acc[h, n, l]
    M: acc[h, n]
    Z: acc[h, n]
    A: acc[h, n, d]
    for b, i, j in grid(h, n, l):
        S[b, i, j] = 0
        for p in range(d):
            S[b, i, j] += acc(Q[b, i, p]) * acc(K[b // group, j, p])
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(l):
            x = (S[b, i, j] * rsqrt(acc(d)) + B[b] * acc(j - i + n - l)) if j <= i + l - n else -inf
            M[b, i] = max(M[b, i], x)
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(l):
            x = (S[b, i, j] * rsqrt(acc(d)) + B[b] * acc(j - i + n - l)) if j <= i + l - n else -inf
            Z[b, i] += exp(x - M[b, i])
    for b, i, e in grid(h, n, d):
        A[b, i, e] = 0
        for j in range(l):
            x = (S[b, i, j] * rsqrt(acc(d)) + B[b] * acc(j - i + n - l)) if j <= i + l - n else -inf
            A[b, i, e] += exp(x - M[b, i]) * acc(V[b // group, j, e])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = t(A[b, i, e] / Z[b, i])


def attention_softcap(Q: t[h, n, d], K: t[hk, l, d], V: t[hk, l, d], cap: acc, O: t[h, n, d],
                      *, h=4, n=64, l=64, d=16, group=1, t="f32", acc="f32"):
    """softmax(cap tanh(Q Kᵀ / sqrt d / cap)) V; the last query sees all keys."""
    hk = h // group
    S: acc[h, n, l]
    M: acc[h, n]
    Z: acc[h, n]
    A: acc[h, n, d]
    for b, i, j in grid(h, n, l):
        S[b, i, j] = 0
        for p in range(d):
            S[b, i, j] += acc(Q[b, i, p]) * acc(K[b // group, j, p])
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(l):
            x = tanh(S[b, i, j] * rsqrt(acc(d)) / cap) * cap if j <= i + l - n else -inf
            M[b, i] = max(M[b, i], x)
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(l):
            x = tanh(S[b, i, j] * rsqrt(acc(d)) / cap) * cap if j <= i + l - n else -inf
            Z[b, i] += exp(x - M[b, i])
    for b, i, e in grid(h, n, d):
        A[b, i, e] = 0
        for j in range(l):
            x = tanh(S[b, i, j] * rsqrt(acc(d)) / cap) * cap if j <= i + l - n else -inf
            A[b, i, e] += exp(x - M[b, i]) * acc(V[b // group, j, e])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = t(A[b, i, e] / Z[b, i])
