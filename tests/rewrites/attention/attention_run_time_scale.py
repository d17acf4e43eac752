# Attention, a scale given at run time: it may not be negative.
# one pass: {stages: M Z A, numerics: rescaled, factors: {Z: exp((M - M') * scale), A: exp((M - M') * scale)}, conditions: [scale >= 0.0]}
def attention_run_time_scale(Q: f32[n, d], K: f32[l, d], V: f32[l, d], O: f32[n, d], scale: f32, *, n=4, l=20, d=4):
    S: f32[n, l]
    M: f32[n]
    Z: f32[n]
    A: f32[n, d]
    for i, j in grid(n, l):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], S[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp((S[i, j] - M[i]) * scale)
    for i, e in grid(n, d):
        A[i, e] = 0
        for j in range(l):
            A[i, e] += exp((S[i, j] - M[i]) * scale) * V[j, e]
    for i, e in grid(n, d):
        O[i, e] = A[i, e] / Z[i]
