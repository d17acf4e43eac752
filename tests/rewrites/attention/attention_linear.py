# Linear attention: no exponential is relative to anything, a denominator is deferred.
# one pass: {stages: Z O, numerics: rescaled, factors: {}, deferred: O}
def attention_linear(Q: f32[n, d], K: f32[l, d], V: f32[l, d], O: f32[n, d], *, n=4, l=20, d=4):
    S: f32[n, l]
    Z: f32[n]
    for i, j in grid(n, l):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += S[i, j]
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(l):
            O[i, e] += S[i, j] / Z[i] * V[j, e]
