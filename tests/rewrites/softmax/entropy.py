# Entropy of a softmax: sum of p log p, two states.
# one pass: {stages: M Z H, numerics: real, factors: {Z: exp(M - M'), H: exp(M - M')}, deferred: H}
def entropy(X: f32[n, l], H: f32[n], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
    for i in range(n):
        H[i] = 0
        for j in range(l):
            H[i] -= exp(X[i, j] - M[i]) / Z[i] * (X[i, j] - M[i] - log(Z[i]))
