# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Attention whose exponentials are rounded to the type of the values, so that instructions of two narrow types take both
products. One pass rounds another number (the exponential behind the greatest score so far): that is equal over the reals.

    autosched rewrite examples/fused/attention_rounded.py:attention_rounded --tile 64 --numerics real
    autosched tune examples/fused/attention_rounded.py:attention_rounded -t nvidia-h200 -d cuda --numerics real \\
        -D h=32 -D n=2048 -D l=2048 -D d=64

Heads and masks as in `attention.py`.
"""


def attention_rounded(Q: t[h, n, d], K: t[hk, l, d], V: t[hk, l, d], O: t[h, n, d],
                      *, h=4, n=64, l=64, d=16, group=1, t="f16", acc="f32"):
    """softmax(Q Kᵀ / sqrt d) V."""
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
            x = S[b, i, j] * rsqrt(acc(d))
            M[b, i] = max(M[b, i], x)
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(l):
            x = S[b, i, j] * rsqrt(acc(d))
            Z[b, i] += exp(x - M[b, i])
    for b, i, e in grid(h, n, d):
        A[b, i, e] = 0
        for j in range(l):
            x = S[b, i, j] * rsqrt(acc(d))
            A[b, i, e] += acc(t(exp(x - M[b, i]))) * acc(V[b // group, j, e])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = t(A[b, i, e] / Z[b, i])


def attention_rounded_causal(Q: t[h, n, d], K: t[hk, l, d], V: t[hk, l, d], O: t[h, n, d],
                             *, h=4, n=64, l=64, d=16, group=1, t="f16", acc="f32"):
    """softmax(Q Kᵀ / sqrt d) V; query i sees the keys up to i + l - n."""
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
            x = S[b, i, j] * rsqrt(acc(d)) if j <= i + l - n else -inf
            M[b, i] = max(M[b, i], x)
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(l):
            x = S[b, i, j] * rsqrt(acc(d)) if j <= i + l - n else -inf
            Z[b, i] += exp(x - M[b, i])
    for b, i, e in grid(h, n, d):
        A[b, i, e] = 0
        for j in range(l):
            x = S[b, i, j] * rsqrt(acc(d)) if j <= i + l - n else -inf
            A[b, i, e] += acc(t(exp(x - M[b, i]))) * acc(V[b // group, j, e])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = t(A[b, i, e] / Z[b, i])
