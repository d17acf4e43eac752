# Terms relative to the running maximum, never rescaled.
# refused: {stage: A, code: DEPENDS}
def running_maximum(X: f32[n, l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        A[i] = 0
        for j in range(l):
            M[i] = max(M[i], X[i, j])
            A[i] += exp(X[i, j] - M[i])
