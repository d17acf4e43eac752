# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A matrix product, a bias and a ramp."""


def matmul_bias_relu(A: a[m, k], B: const[b[k, n]], D: const[acc[n]], C: out[m, n],
                     *, m=512, n=512, k=512, a="f32", b="f32", acc="f32", out="f32"):
    """C = max(A B + D, 0)."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[i, p]) * acc(B[p, j])
    for i, j in grid(m, n):
        C[i, j] = out(max(S[i, j] + D[j], 0))
