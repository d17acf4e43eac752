# Attention of eight heads that share keys in pairs, causal bounds in the loops.
# one pass: {stages: M Z O, numerics: rescaled, factors: {Z: exp(M - M'), O: exp(M - M')}, deferred: O}
def attention_grouped_heads(Q: f32[h, n, d], K: f32[g, l, d], V: f32[g, l, d], O: f32[h, n, d], *, h=4, g=2, n=4, l=12, d=3):
    S: f32[h, n, l]
    M: f32[h, n]
    Z: f32[h, n]
    for b, i, j in grid(h, n, l):
        S[b, i, j] = 0
        for p in range(d):
            S[b, i, j] += Q[b, i, p] * K[b // 2, j, p]
    for b, i in grid(h, n):
        M[b, i] = -inf
        for j in range(min(i + 1, l)):
            M[b, i] = max(M[b, i], S[b, i, j])
        Z[b, i] = 0
        for j in range(min(i + 1, l)):
            Z[b, i] += exp(S[b, i, j] - M[b, i])
        for e in range(d):
            O[b, i, e] = 0
            for j in range(min(i + 1, l)):
                O[b, i, e] += exp(S[b, i, j] - M[b, i]) / Z[b, i] * V[b // 2, j, e]
