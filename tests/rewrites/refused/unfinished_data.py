# Data that need the finished maximum.
# refused: {stage: A, code: DEPENDS}
def unfinished_data(X: f32[n, l], Y: f32[n, l, k], A: f32[n], *, n=4, l=20, k=2):
    M: f32[n]
    T: f32[n, l]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i, j in grid(n, l):
        T[i, j] = M[i]
        for p in range(k):
            T[i, j] += Y[i, j, p]
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[i]) * T[i, j]
