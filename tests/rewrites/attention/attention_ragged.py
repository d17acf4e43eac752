# Attention of sequences of several lengths: guards on offsets.
# one pass: {stages: M Z A, numerics: rescaled, factors: {Z: exp(M - M'), A: exp(M - M')}}
def attention_ragged(Q: f32[n, d], K: f32[l, d], V: f32[l, d], O: f32[n, d], B: s32[n], F: s32[c], *, n=4, l=20, d=4, c=3):
    assume(0 <= B <= 1)
    S: f32[n, l]
    A: f32[n, d]
    M: f32[n]
    Z: f32[n]
    for i, j in grid(n, l):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            if s32(j) >= F[B[i]] and s32(j) < F[B[i] + 1]:
                M[i] = max(M[i], S[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            if s32(j) >= F[B[i]] and s32(j) < F[B[i] + 1]:
                Z[i] += exp(S[i, j] - M[i])
    for i, e in grid(n, d):
        A[i, e] = 0
        for j in range(l):
            if s32(j) >= F[B[i]] and s32(j) < F[B[i] + 1]:
                A[i, e] += exp(S[i, j] - M[i]) * V[j, e]
    for i, e in grid(n, d):
        O[i, e] = A[i, e] / Z[i]
