# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Sums and maxima of a matrix, over its rows or its columns."""


def sum_rows(X: t[m, n], Y: acc[m], *, m=1024, n=1024, t="f32", acc="f32"):
    """Y[i] = the sum of row i."""
    for i in range(m):
        Y[i] = 0
        for j in range(n):
            Y[i] += acc(X[i, j])


def sum_columns(X: t[m, n], Y: acc[n], *, m=1024, n=1024, t="f32", acc="f32"):
    """Y[j] = the sum of column j."""
    for j in range(n):
        Y[j] = 0
        for i in range(m):
            Y[j] += acc(X[i, j])


def max_rows(X: t[m, n], Y: t[m], *, m=1024, n=1024, t="f32"):
    """Y[i] = the greatest of row i."""
    for i in range(m):
        Y[i] = X[i, 0]
        for j in range(n):
            Y[i] = max(Y[i], X[i, j])


def max_columns(X: t[m, n], Y: t[n], *, m=1024, n=1024, t="f32"):
    """Y[j] = the greatest of column j."""
    for j in range(n):
        Y[j] = X[0, j]
        for i in range(m):
            Y[j] = max(Y[j], X[i, j])
