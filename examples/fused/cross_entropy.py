# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Logarithms of a softmax, and the loss that reads one of each row.

    autosched rewrite examples/fused/cross_entropy.py:cross_entropy --tile 8    # logits are in memory a block at a time
    autosched tune examples/fused/cross_entropy.py:log_softmax
"""


def cross_entropy(X: t[m, k], W: const[t[k, v]], T: s32[m], Y: acc[m], *, m=32, k=32, v=256, t="f32", acc="f32"):
    """log sum exp(X W) - (X W)[T], by rows: the loss of the class T of v."""
    assume(0 <= T <= v - 1)
    C: acc[m, v]
    M: acc[m]
    Z: acc[m]
    G: acc[m]
    for i, j in grid(m, v):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(X[i, p]) * acc(W[p, j])
    for i in range(m):
        M[i] = -inf
        for j in range(v):
            M[i] = max(M[i], C[i, j])
    for i in range(m):
        Z[i] = 0
        for j in range(v):
            Z[i] += exp(C[i, j] - M[i])
    for i in range(m):
        G[i] = 0
        for p in range(k):
            G[i] += acc(X[i, p]) * acc(W[p, T[i]])
    for i in range(m):
        Y[i] = log(Z[i]) + M[i] - G[i]


def log_softmax(X: t[m, n], Y: t[m, n], *, m=64, n=256, t="f32", acc="f32"):
    """Y[i] = X[i] - log sum exp(X[i])."""
    M: acc[m]
    Z: acc[m]
    for i in range(m):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], acc(X[i, j]))
    for i in range(m):
        Z[i] = 0
        for j in range(n):
            Z[i] += exp(acc(X[i, j]) - M[i])
    for i, j in grid(m, n):
        Y[i, j] = t(acc(X[i, j]) - M[i] - log(Z[i]))
