# ruff: noqa: F821, E741
def attention(
    Q: f32[h, n, d], K: f32[h, l, d], V: f32[h, l, d], O: f32[h, n, d], *, h=4, n=128, l=128, d=64
):
    """softmax(Q K^T / sqrt(d)) V, a stage at a time."""
    S: f32[h, n, l]
    M: f32[h, n]
    Z: f32[h, n]
    A: f32[h, n, d]
    for b, i, j in grid(h, n, l):
        S[b, i, j] = 0
        for p in range(d):
            S[b, i, j] += Q[b, i, p] * K[b, j, p]
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(l):
            M[b, i] = max(M[b, i], S[b, i, j])
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(l):
            Z[b, i] += exp((S[b, i, j] - M[b, i]) * 0.125)
    for b, i, e in grid(h, n, d):
        A[b, i, e] = 0
        for j in range(l):
            A[b, i, e] += exp((S[b, i, j] - M[b, i]) * 0.125) * V[b, j, e]
    for b, i, e in grid(h, n, d):
        O[b, i, e] = A[b, i, e] / Z[b, i]
