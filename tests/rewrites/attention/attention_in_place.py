# Attention, divided by the sum in place.
# one pass: {stages: M Z O, numerics: rescaled, factors: {Z: exp((M - M') * 0.5), O: exp((M - M') * 0.5)}}
def attention_in_place(S: f32[n, l], V: f32[l, d], O: f32[n, d], *, n=4, l=20, d=4):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], S[i, j])
        Z[i] = 0
        for j in range(l):
            Z[i] += exp((S[i, j] - M[i]) * 0.5)
        for e in range(d):
            O[i, e] = 0
            for j in range(l):
                O[i, e] += exp((S[i, j] - M[i]) * 0.5) * V[j, e]
        for e in range(d):
            O[i, e] = O[i, e] / Z[i]
