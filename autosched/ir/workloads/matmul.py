# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Matrix products. `_nt`: B transposed, `_tn`: A transposed, `_tt`: both; `_to`: rounded into `out` at the end."""


def matmul(A: a[m, k], B: const[b[k, n]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = A B."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[i, p]) * acc(B[p, j])


def matmul_to(A: a[m, k], B: const[b[k, n]], C: out[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32", out="f16"):
    """C = A B, summed in `acc` and converted to `out`."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[i, p]) * acc(B[p, j])
    for i, j in grid(m, n):
        C[i, j] = out(S[i, j])


def matmul_nt(A: a[m, k], B: const[b[n, k]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = A Bᵀ."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[i, p]) * acc(B[j, p])


def matmul_nt_to(A: a[m, k], B: const[b[n, k]], C: out[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32", out="f16"):
    """C = A Bᵀ, summed in `acc` and converted to `out`."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[i, p]) * acc(B[j, p])
    for i, j in grid(m, n):
        C[i, j] = out(S[i, j])


def matmul_tn(A: a[k, m], B: const[b[k, n]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = Aᵀ B."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[p, i]) * acc(B[p, j])


def matmul_tn_to(A: a[k, m], B: const[b[k, n]], C: out[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32", out="f16"):
    """C = Aᵀ B, summed in `acc` and converted to `out`."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[p, i]) * acc(B[p, j])
    for i, j in grid(m, n):
        C[i, j] = out(S[i, j])


def matmul_tt(A: a[k, m], B: const[b[n, k]], C: acc[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32"):
    """C = Aᵀ Bᵀ."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[p, i]) * acc(B[j, p])


def matmul_tt_to(A: a[k, m], B: const[b[n, k]], C: out[m, n], *, m=512, n=512, k=512, a="f32", b="f32", acc="f32", out="f16"):
    """C = Aᵀ Bᵀ, summed in `acc` and converted to `out`."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[p, i]) * acc(B[j, p])
    for i, j in grid(m, n):
        C[i, j] = out(S[i, j])
