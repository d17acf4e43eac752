# Logsumexp of rows.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def logsumexp(X: f32[n, l], L: f32[n], *, n=4, l=20):
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
    for i in range(n):
        L[i] = M[i] + log(Z[i])
