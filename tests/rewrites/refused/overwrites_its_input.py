# The elements are doubled between the maximum and the sum.
# refused: {stage: X, code: DEPENDS}
def overwrites_its_input(X: f32[n, l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i, j in grid(n, l):
        X[i, j] = X[i, j] * 2
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[i])
