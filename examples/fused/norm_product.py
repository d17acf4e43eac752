# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A norm of rows, and a product of its result.

    autosched rewrite examples/fused/norm_product.py:rms_norm_product --explain
    autosched tune examples/fused/norm_product.py:layer_norm_product -D m=128
"""


def rms_norm_product(X: t[m, k], G: const[acc[k]], W: const[t[k, n]], Y: acc[m, n],
                     *, m=32, k=128, n=64, t="f32", acc="f32"):
    """(X / sqrt(mean X² + 1e-5) G) W."""
    Q: acc[m]
    N: t[m, k]
    for i in range(m):
        Q[i] = 0
        for p in range(k):
            Q[i] += acc(X[i, p]) * acc(X[i, p])
    for i, p in grid(m, k):
        N[i, p] = t(acc(X[i, p]) * rsqrt(Q[i] / acc(k) + 1e-5) * G[p])
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(N[i, p]) * acc(W[p, j])


def layer_norm_product(X: t[m, k], G: const[acc[k]], B: const[acc[k]], W: const[t[k, n]], Y: acc[m, n],
                       *, m=32, k=128, n=64, t="f32", acc="f32"):
    """((X - mean X) / sqrt(var X + 1e-5) G + B) W."""
    M: acc[m]
    Q: acc[m]
    N: t[m, k]
    for i in range(m):
        M[i] = 0
        for p in range(k):
            M[i] += acc(X[i, p])
    for i in range(m):
        Q[i] = 0
        for p in range(k):
            x = acc(X[i, p]) - M[i] / acc(k)
            Q[i] += x * x
    for i, p in grid(m, k):
        N[i, p] = t((acc(X[i, p]) - M[i] / acc(k)) * rsqrt(Q[i] / acc(k) + 1e-5) * G[p] + B[p])
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(N[i, p]) * acc(W[p, j])
