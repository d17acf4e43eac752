# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A matrix product of 2:4 sparse data: of each four elements of a row of A two are kept."""


def matmul_sparse(A: const[t[m, k // 2]], E: const[u8[m, k // 2]], B: t[n, k], C: acc[m, n],
                  *, m=512, n=512, k=512, t="f16", acc="f32"):
    """C = A B^T: A[i, q] is element E[i, q] of the four that it comes from, the (q // 2)-th of row i."""
    assume(k % 4 == 0)
    assume(E <= 3)
    assume(distinct(E, 2))
    for i, j in grid(m, n):
        C[i, j] = 0
        for q in range(k // 2):
            C[i, j] += acc(A[i, q]) * acc(B[j, s32(4 * (q // 2)) + s32(E[i, q])])
