# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Layer norm over the last dimension."""


def layer_norm(X: t[m, n], G: const[acc[n]], D: const[acc[n]], Y: t[m, n], *, m=512, n=768, t="f32", acc="f32"):
    """Y[i] = (X[i] - mean X[i]) / sqrt(var X[i] + 1e-5) * G + D."""
    M: acc[m]
    V: acc[m]
    for i in range(m):
        M[i] = 0
        for j in range(n):
            M[i] += acc(X[i, j])
        V[i] = 0
        for j in range(n):
            V[i] += (acc(X[i, j]) - M[i] / acc(n)) * (acc(X[i, j]) - M[i] / acc(n))
        for j in range(n):
            Y[i, j] = t((acc(X[i, j]) - M[i] / acc(n)) * rsqrt(V[i] / acc(n) + 1e-5) * G[j] + D[j])
