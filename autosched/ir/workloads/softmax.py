# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Softmax over the last dimension."""


def softmax(X: t[m, n], Y: t[m, n], *, m=512, n=512, t="f32", acc="f32"):
    """Y[i] = exp(X[i] - max X[i]) / sum."""
    M: acc[m]
    S: acc[m]
    for i in range(m):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], acc(X[i, j]))
        S[i] = 0
        for j in range(n):
            S[i] += exp(acc(X[i, j]) - M[i])
        for j in range(n):
            Y[i, j] = t(exp(acc(X[i, j]) - M[i]) / S[i])
