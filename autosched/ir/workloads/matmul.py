# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Matrix products. `_nt`: B transposed, `_tn`: A transposed, `_tt`: both."""


def matmul(A: a[m, k], B: const[b[k, n]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = A B."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[i, p]) * acc(B[p, j])


def matmul_nt(A: a[m, k], B: const[b[n, k]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = A Bᵀ."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[i, p]) * acc(B[j, p])


def matmul_tn(A: a[k, m], B: const[b[k, n]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = Aᵀ B."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[p, i]) * acc(B[p, j])


def matmul_tt(A: a[k, m], B: const[b[n, k]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = Aᵀ Bᵀ."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[p, i]) * acc(B[j, p])
