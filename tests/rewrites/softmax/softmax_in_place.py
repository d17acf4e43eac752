# Softmax of rows in place.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def softmax_in_place(X: f32[n, l], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
        for j in range(l):
            X[i, j] = exp(X[i, j] - M[i]) / Z[i]
