# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Products of rows, each with the weights of its expert.

    autosched rewrite examples/fused/experts.py:matmul_experts_contiguous
    autosched tune examples/fused/experts.py:matmul_experts_masked
"""


def matmul_experts_contiguous(X: t[m, k], W: const[t[experts, k, n]], E: s32[blocks], Y: acc[m, n],
                              *, m=64, n=32, k=64, experts=4, block=16, t="f32", acc="f32"):
    """Y[i] = X[i] W[E[i // block]]: the rows of an expert are contiguous, and their number is a multiple of `block`."""
    assume(m % block == 0)
    blocks = m // block
    assume(0 <= E <= experts - 1)
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(X[i, p]) * acc(W[E[i // block], p, j])


def matmul_experts_masked(X: t[experts, m, k], W: const[t[experts, k, n]], R: s32[experts], Y: acc[experts, m, n],
                          *, m=32, n=32, k=64, experts=4, t="f32", acc="f32"):
    """Y[x] = X[x] W[x] in the first R[x] rows of expert x, 0 in the others."""
    assume(0 <= R <= m)
    for x, i, j in grid(experts, m, n):
        Y[x, i, j] = 0
        for p in range(k):
            if s32(i) < R[x]:
                Y[x, i, j] += acc(X[x, i, p]) * acc(W[x, p, j])
