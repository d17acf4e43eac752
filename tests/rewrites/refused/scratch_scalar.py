# One scratch number for all rows.
# no cascade
def scratch_scalar(X: f32[n, l], A: f32[n], *, n=4, l=20):
    M: f32[1]
    for i in range(n):
        M[0] = -inf
        for j in range(l):
            M[0] = max(M[0], X[i, j])
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[0])
