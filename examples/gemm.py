# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A matrix product of 8-bit integers, and the same in float with the columns' bias and scale applied on the way out.

    autosched tune examples/gemm.py:gemm -D m=256
    autosched match examples/gemm.py:gemm -i 'x86/*' --explain
"""


def gemm(A: u8[m, k], B: const[s8[k, n]], C: s32[m, n], *, m=512, n=512, k=512):
    """C = A B, exact in int32."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])


def gemm_bias_gelu(A: f32[m, k], B: const[f32[k, n]], bias: f32[n], C: f32[m, n], *, m=512, n=512, k=512):
    """C = gelu(A B + bias): one intermediate tensor, which the schedule keeps in registers."""
    T: f32[m, n]
    for i, j in grid(m, n):
        T[i, j] = 0
        for p in range(k):
            T[i, j] += A[i, p] * B[p, j]
        x = T[i, j] + bias[j]
        C[i, j] = 0.5 * x * (1.0 + erf(x * 0.70710678))
