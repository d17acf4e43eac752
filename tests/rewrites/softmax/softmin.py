# Softmin: a minimum is the reference.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp((M - M') * (-1.0))}}
def softmin(X: f32[n, l], Z: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = inf
        for j in range(l):
            M[i] = min(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(M[i] - X[i, j])
