# Softmax of bf16 rows, sums in f32, the maximum in bf16.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def softmax_bf16(X: bf16[n, l], Z: f32[n], *, n=4, l=20):
    M: bf16[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(f32(X[i, j]) - f32(M[i]))
