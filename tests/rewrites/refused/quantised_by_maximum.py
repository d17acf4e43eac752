# Elements divided by their maximum and rounded, before a product.
# refused: {stage: A, code: NOT_SEPARABLE}
def quantised_by_maximum(X: f32[n, l], V: f32[l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += round(127 * X[i, j] / M[i]) * V[j]
