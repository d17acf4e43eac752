# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Attention of sequences of different lengths, one behind the other.

    autosched rewrite examples/fused/attention_offsets.py --explain
    autosched tune examples/fused/attention_offsets.py -D n=128
"""


def attention_offsets(Q: t[h, n, d], K: t[h, n, d], V: t[h, n, d], B: s32[n], E: s32[n], O: t[h, n, d],
                      *, h=2, n=96, d=16, t="f32", acc="f32"):
    """softmax(Q Kᵀ / sqrt d) V; query i sees the keys of its sequence, from B[i] to before E[i]."""
    assume(0 <= B <= n)
    assume(0 <= E <= n)
    S: acc[h, n, n]
    M: acc[h, n]
    Z: acc[h, n]
    A: acc[h, n, d]
    for b, i, j in grid(h, n, n):
        S[b, i, j] = 0
        for p in range(d):
            S[b, i, j] += acc(Q[b, i, p]) * acc(K[b, j, p])
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(n):
            x = S[b, i, j] * rsqrt(acc(d)) if B[i] <= s32(j) and s32(j) < E[i] else -inf
            M[b, i] = max(M[b, i], x)
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(n):
            x = S[b, i, j] * rsqrt(acc(d)) if B[i] <= s32(j) and s32(j) < E[i] else -inf
            Z[b, i] += exp(x - M[b, i])
    for b, i, e in grid(h, n, d):
        A[b, i, e] = 0
        for j in range(n):
            x = S[b, i, j] * rsqrt(acc(d)) if B[i] <= s32(j) and s32(j) < E[i] else -inf
            A[b, i, e] += exp(x - M[b, i]) * acc(V[b, j, e])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = t(A[b, i, e] / Z[b, i])
