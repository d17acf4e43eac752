# The wrong sign in the exponent: the factor leads away from the start.
# refused: {stage: A, code: NOT_DISTRIBUTIVE}
def wrong_sign(X: f32[n, l], V: f32[l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(M[i] - X[i, j]) * V[j]
