# Attention with a soft cap: tanh of the score alone.
# one pass: {stages: M Z A, numerics: rescaled, factors: {Z: exp(M - M'), A: exp(M - M')}}
def attention_soft_cap(Q: f32[n, d], K: f32[l, d], V: f32[l, d], O: f32[n, d], *, n=4, l=20, d=4):
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
            M[i] = max(M[i], 30 * tanh(S[i, j] / 30))
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp((30 * tanh(S[i, j] / 30)) - M[i])
    for i, e in grid(n, d):
        A[i, e] = 0
        for j in range(l):
            A[i, e] += exp((30 * tanh(S[i, j] / 30)) - M[i]) * V[j, e]
    for i, e in grid(n, d):
        O[i, e] = A[i, e] / Z[i]
