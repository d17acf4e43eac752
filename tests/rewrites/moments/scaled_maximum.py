# The greatest element relative to another maximum, scaled.
# one pass: {stages: M B, numerics: rescaled, factors: {}, deferred: B}
def scaled_maximum(X: f32[n, l], Y: f32[n, l], B: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        B[i] = -inf
        for j in range(l):
            B[i] = max(B[i], Y[i, j] * 2 - M[i])
