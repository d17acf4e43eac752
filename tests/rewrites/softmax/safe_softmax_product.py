# Safe softmax times a vector.
# one pass: {stages: M Z A, numerics: rescaled, factors: {Z: exp(M - M'), A: exp(M - M')}}
def safe_softmax_product(X: f32[n, l], V: f32[l], O: f32[n], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    A: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[i]) * V[j]
    for i in range(n):
        O[i] = A[i] / Z[i]
