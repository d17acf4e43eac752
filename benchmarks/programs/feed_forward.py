# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""What stands between two attentions: a gated pair of products (SwiGLU), two products in a row, 4-bit weights."""


def swiglu(X: t[m, k], W: const[t[k, n]], U: const[t[k, n]], Y: t[m, n], *, m=512, k=1024, n=2816, t="f32"):
    """Y = silu(X W) * (X U)."""
    A: f32[m, n]
    B: f32[m, n]
    for i, j in grid(m, n):
        A[i, j] = 0
        for p in range(k):
            A[i, j] += f32(X[i, p]) * f32(W[p, j])
    for i, j in grid(m, n):
        B[i, j] = 0
        for p in range(k):
            B[i, j] += f32(X[i, p]) * f32(U[p, j])
    for i, j in grid(m, n):
        Y[i, j] = t(A[i, j] * sigmoid(A[i, j]) * B[i, j])


def mlp(X: t[m, k], W: const[t[k, n]], V: const[t[n, k]], Y: f32[m, k], *, m=512, k=768, n=3072, t="f32"):
    """Y = relu(X W) V."""
    A: f32[m, n]
    H: t[m, n]
    for i, j in grid(m, n):
        A[i, j] = 0
        for p in range(k):
            A[i, j] += f32(X[i, p]) * f32(W[p, j])
    for i, j in grid(m, n):
        H[i, j] = t(max(A[i, j], 0))
    for i, p in grid(m, k):
        Y[i, p] = 0
        for j in range(n):
            Y[i, p] += f32(H[i, j]) * f32(V[j, p])


def weights4(X: t[m, k], Q: const[u4[n, k]], G: const[f32[n, k // 128]], Y: f32[m, n],
             *, m=16, n=14336, k=4096, t="f32"):
    """Y = X Wᵀ, W of 4 bits with a scale for every 128 along the depth."""
    W: t[n, k]
    for j, p in grid(n, k):
        W[j, p] = t((f32(Q[j, p]) - 8.0) * G[j, p // 128])
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += f32(X[i, p]) * f32(W[j, p])
