# A reference that is read at a row from data.
# no cascade
def gathered_reference(X: f32[n, l], V: f32[l], I: s32[n], A: f32[n], *, n=4, l=20):
    assume(0 <= I <= 3)
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - M[I[i]]) * V[j]
