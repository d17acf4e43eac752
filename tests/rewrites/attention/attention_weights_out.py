# Attention whose weights are an output as well.
# one pass: {stages: M Z O, numerics: rescaled, factors: {Z: exp(M - M'), O: exp(M - M')}, deferred: O}
def attention_weights_out(Q: f32[n, d], K: f32[l, d], V: f32[l, d], O: f32[n, d], P: f32[n, l], *, n=4, l=20, d=4):
    S: f32[n, l]
    M: f32[n]
    Z: f32[n]
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
            Z[i] += exp(S[i, j] - M[i])
    for i, j in grid(n, l):
        P[i, j] = exp(S[i, j] - M[i]) / Z[i]
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(l):
            O[i, e] += P[i, j] * V[j, e]
