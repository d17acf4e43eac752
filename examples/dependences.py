# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Loops whose iterations depend on earlier ones: what may move is what is proved independent, and nothing else.

    autosched tune examples/dependences.py:prefix_sum        the rows are independent, the columns are not
    autosched tune examples/dependences.py:stencil           both directions carry a dependence
    autosched match examples/dependences.py:prefix_sum --explain
"""


def prefix_sum(X: f32[rows, n], Y: f32[rows, n], *, rows=64, n=512):
    """Y[r, i] = X[r, 0] + … + X[r, i]."""
    for r in range(rows):
        Y[r, 0] = X[r, 0]
        for i in range(1, n):
            Y[r, i] = Y[r, i - 1] + X[r, i]


def stencil(A: f32[n, n], *, n=128):
    """One sweep in place: every point sees its upper and left neighbours as already updated."""
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
