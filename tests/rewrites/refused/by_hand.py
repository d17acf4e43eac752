# The carried state written by hand.
# refused: {stage: A.2, code: DEPENDS}
def by_hand(X: f32[n, l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    B: f32[n]
    for i in range(n):
        M[i] = -inf
        A[i] = 0
        for j in range(l):
            B[i] = M[i]
            M[i] = max(M[i], X[i, j])
            A[i] = A[i] * exp(B[i] - M[i]) + exp(X[i, j] - M[i])
