# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""One result for each element: sums, ramps and activations."""


def elementwise_add(A: t[m, n], B: t[m, n], C: t[m, n], *, m=1024, n=1024, t="f32"):
    """C = A + B."""
    for i, j in grid(m, n):
        C[i, j] = A[i, j] + B[i, j]


def elementwise_relu(A: t[m, n], C: t[m, n], *, m=1024, n=1024, t="f32"):
    """C = max(A, 0)."""
    for i, j in grid(m, n):
        C[i, j] = max(A[i, j], 0)


def elementwise_gelu(A: t[m, n], C: t[m, n], *, m=1024, n=1024, t="f32", acc="f32"):
    """C = A / 2 (1 + erf(A / sqrt 2))."""
    for i, j in grid(m, n):
        C[i, j] = t(acc(A[i, j]) * 0.5 * (1.0 + erf(acc(A[i, j]) * 0.7071067811865476)))


def elementwise_sigmoid(A: t[m, n], C: t[m, n], *, m=1024, n=1024, t="f32", acc="f32"):
    """C = 1 / (1 + exp(-A))."""
    for i, j in grid(m, n):
        C[i, j] = t(sigmoid(acc(A[i, j])))


def elementwise_bias(A: t[m, n], D: const[t[n]], C: t[m, n], *, m=1024, n=1024, t="f32"):
    """C = A + D, a bias for each column."""
    for i, j in grid(m, n):
        C[i, j] = A[i, j] + D[j]
