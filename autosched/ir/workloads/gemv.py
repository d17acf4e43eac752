# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A matrix times a vector; the matrix is known before the run."""


def gemv(A: const[a[m, k]], B: b[k], C: acc[m], *, m=1024, k=1024, a="f32", b="f32", acc="f32"):
    """C = A B for a vector B."""
    for i in range(m):
        C[i] = 0
        for p in range(k):
            C[i] += acc(A[i, p]) * acc(B[p])
