# The sum leaves the first element out, the maximum does not.
# refused: {stage: A, code: DEPENDS}
def different_bounds(X: f32[n, l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 0
        for j in range(1, l):
            A[i] += exp(X[i, j] - M[i])
