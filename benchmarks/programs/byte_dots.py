# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Rows of bytes that end within a vector (benchmarks/recorded/complete)."""


def byte_dots(X: u8[m, n], Z: s8[m, n], S: s32[m], *, m=64, n=150):
    """The product of each row with the other's, exact in int32."""
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += s32(X[i, j]) * s32(Z[i, j])
