# The first place of a row's maximum, as an integer.
# one pass: {stages: M K, numerics: bitwise, factors: {K: K if M == M' else s32(1000000)}}
def argmax(X: f32[n, l], K: s32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        K[i] = 1000000
        for j in range(l):
            K[i] = min(K[i], s32(j) if X[i, j] == M[i] else 1000000)
