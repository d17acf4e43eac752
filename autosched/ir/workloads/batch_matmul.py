# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A matrix product for each element of a batch. `_nt`: B transposed, `_tn`: A transposed, `_tt`: both."""


def batch_matmul(A: a[batch, m, k], B: b[batch, k, n], C: acc[batch, m, n],
                 *, batch=8, m=128, n=128, k=128, a="f32", b="f32", acc="f32"):
    """C[z] = A[z] B[z]."""
    for z, i, j in grid(batch, m, n):
        C[z, i, j] = 0
        for p in range(k):
            C[z, i, j] += acc(A[z, i, p]) * acc(B[z, p, j])


def batch_matmul_nt(A: a[batch, m, k], B: b[batch, n, k], C: acc[batch, m, n],
                    *, batch=8, m=128, n=128, k=128, a="f32", b="f32", acc="f32"):
    """C[z] = A[z] B[z]ᵀ."""
    for z, i, j in grid(batch, m, n):
        C[z, i, j] = 0
        for p in range(k):
            C[z, i, j] += acc(A[z, i, p]) * acc(B[z, j, p])


def batch_matmul_tn(A: a[batch, k, m], B: b[batch, k, n], C: acc[batch, m, n],
                    *, batch=8, m=128, n=128, k=128, a="f32", b="f32", acc="f32"):
    """C[z] = A[z]ᵀ B[z]."""
    for z, i, j in grid(batch, m, n):
        C[z, i, j] = 0
        for p in range(k):
            C[z, i, j] += acc(A[z, p, i]) * acc(B[z, p, j])


def batch_matmul_tt(A: a[batch, k, m], B: b[batch, n, k], C: acc[batch, m, n],
                    *, batch=8, m=128, n=128, k=128, a="f32", b="f32", acc="f32"):
    """C[z] = A[z]ᵀ B[z]ᵀ."""
    for z, i, j in grid(batch, m, n):
        C[z, i, j] = 0
        for p in range(k):
            C[z, i, j] += acc(A[z, p, i]) * acc(B[z, j, p])
