# Sums at two temperatures relative to one maximum.
# one pass: {stages: M A B, numerics: rescaled, factors: {A: exp((M - M') * 0.5), B: exp((M - M') * 0.25)}}
def two_temperatures(X: f32[n, l], A: f32[n], B: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp((X[i, j] - M[i]) * 0.5)
    for i in range(n):
        B[i] = 0
        for j in range(l):
            B[i] += exp((X[i, j] - M[i]) * 0.25)
