# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A matrix product of parts of wider matrices: rows lie `lda` and `ldb` elements apart."""


def matmul_strided(A: a[m, lda], B: const[b[k, ldb]], C: acc[m, n],
                   *, m=512, n=512, k=512, lda=576, ldb=576, a="f32", b="f32", acc="f32"):
    """C = A[:, :k] B[:, :n]."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[i, p]) * acc(B[p, j])
