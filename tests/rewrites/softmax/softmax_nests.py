# Softmax of rows, a nest a stage.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def softmax_nests(X: f32[n, l], Y: f32[n, l], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
    for i, j in grid(n, l):
        Y[i, j] = exp(X[i, j] - M[i]) / Z[i]
