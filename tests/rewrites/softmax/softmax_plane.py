# Softmax over two axes.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def softmax_plane(X: f32[n, l, k], Y: f32[n, l, k], *, n=4, l=12, k=3):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for r, s in grid(l, k):
            M[i] = max(M[i], X[i, r, s])
        Z[i] = 0
        for r, s in grid(l, k):
            Z[i] += exp(X[i, r, s] - M[i])
    for i, r, s in grid(n, l, k):
        Y[i, r, s] = exp(X[i, r, s] - M[i]) / Z[i]
