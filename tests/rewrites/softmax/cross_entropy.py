# Cross entropy of logits and a label for each row.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def cross_entropy(X: f32[n, l], T: s32[n], loss: f32[n], *, n=4, l=20):
    assume(0 <= T <= 3)
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
        loss[i] = M[i] + log(Z[i]) - X[i, T[i]]
