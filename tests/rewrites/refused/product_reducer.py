# A product of what depends on the maximum.
# refused: {stage: A, code: UNSUPPORTED}
def product_reducer(X: f32[n, l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 1
        for j in range(l):
            A[i] *= exp(X[i, j] - M[i])
