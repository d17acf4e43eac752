# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A matrix product, a bias and GELU, exact (erf) or in the usual approximation (tanh)."""


def matmul_bias_gelu(A: a[m, k], B: const[b[k, n]], D: const[acc[n]], C: out[m, n],
                     *, m=128, n=3072, k=768, a="f32", b="f32", acc="f32", out="f32"):
    """C = gelu(A B + D), with gelu(x) = x / 2 (1 + erf(x / sqrt 2))."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[i, p]) * acc(B[p, j])
    for i, j in grid(m, n):
        s = S[i, j] + D[j]
        C[i, j] = out(s * 0.5 * (1.0 + erf(s * 0.7071067811865476)))


def matmul_bias_gelu_tanh(A: a[m, k], B: const[b[k, n]], D: const[acc[n]], C: out[m, n],
                          *, m=128, n=3072, k=768, a="f32", b="f32", acc="f32", out="f32"):
    """C = gelu(A B + D), with gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[i, p]) * acc(B[p, j])
    for i, j in grid(m, n):
        s = S[i, j] + D[j]
        C[i, j] = out(s * 0.5 * (1.0 + tanh(0.7978845608028654 * (s + 0.044715 * s * s * s))))
