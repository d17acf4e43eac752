# ReLU attention: no cascade.
# no cascade
def attention_relu(Q: f32[n, d], K: f32[l, d], V: f32[l, d], O: f32[n, d], *, n=4, l=20, d=4):
    S: f32[n, l]
    for i, j in grid(n, l):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(l):
            O[i, e] += max(S[i, j], 0) * V[j, e]
