# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Scans along rows: each element needs the one before it.

    autosched rewrite examples/fused/scans.py:prefix_sum
    autosched tune examples/fused/scans.py:linear_scan
"""


def prefix_sum(X: t[m, n], Y: acc[m, n], *, m=64, n=256, t="f32", acc="f32"):
    """Y[i, j] = X[i, 0] + … + X[i, j]."""
    for i in range(m):
        Y[i, 0] = acc(X[i, 0])
        for j in range(1, n):
            Y[i, j] = Y[i, j - 1] + acc(X[i, j])


def prefix_max(X: t[m, n], Y: t[m, n], *, m=64, n=256, t="f32"):
    """Y[i, j] = max(X[i, 0], …, X[i, j])."""
    for i in range(m):
        Y[i, 0] = X[i, 0]
        for j in range(1, n):
            Y[i, j] = max(Y[i, j - 1], X[i, j])


def linear_scan(A: t[m, n], X: t[m, n], Y: acc[m, n], *, m=64, n=256, t="f32", acc="f32"):
    """Y[i, j] = A[i, j] Y[i, j - 1] + X[i, j]: a gated recurrence."""
    for i in range(m):
        Y[i, 0] = acc(X[i, 0])
        for j in range(1, n):
            Y[i, j] = acc(A[i, j]) * Y[i, j - 1] + acc(X[i, j])
