# Softmax of rows whose starts are nests of their own.
# one pass: {stages: M.2 Z.2, numerics: rescaled, factors: {Z.2: exp(M - M')}}
def softmax_starts(X: f32[n, l], Y: f32[n, l], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
    for i in range(n):
        Z[i] = 0
    for i, j in grid(n, l):
        M[i] = max(M[i], X[i, j])
    for i, j in grid(n, l):
        Z[i] += exp(X[i, j] - M[i])
    for i, j in grid(n, l):
        Y[i, j] = exp(X[i, j] - M[i]) / Z[i]
