# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A quantised matrix product: integers in and out, with a scale for each column."""


def matmul_requant(A: a[m, k], B: const[b[k, n]], D: const[f32[n]], C: out[m, n],
                   *, m=512, n=512, k=512, a="u8", b="s8", acc="s32", out="s8"):
    """C = round(A B * D), saturated."""
    S: acc[m, n]
    for i, j in grid(m, n):
        S[i, j] = 0
        for p in range(k):
            S[i, j] += acc(A[i, p]) * acc(B[p, j])
    for i, j in grid(m, n):
        C[i, j] = sat_out(round(f32(S[i, j]) * D[j]))
