# Softmax with one more in the denominator, relative to the maximum.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def softmax_plus_one(X: f32[n, l], Z: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = 0
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = exp(-M[i])
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
