# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Rows that end within a vector: the clock ranks their schedules by chance (benchmarks/recorded/complete)."""


def row_norms(X: f32[m, n], S: f32[m], *, m=200, n=77):
    """The sum of squares of each row; rows end within a vector."""
    for i in range(m):
        S[i] = 0.0
        for j in range(n):
            S[i] += X[i, j] * X[i, j]
