# A reference that is read at another row.
# no cascade
def other_row(X: f32[n, l], V: f32[l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[i - 1]) * V[j] if i > 0 else 0
