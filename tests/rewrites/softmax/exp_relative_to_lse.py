# A sum relative to L = M + log(Z), as a backward pass writes it.
# one pass: {stages: M Z A, numerics: rescaled, factors: {Z: exp(M - M'), A: exp(M - M')}, deferred: A}
def exp_relative_to_lse(X: f32[n, l], V: f32[l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    L: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
    for i in range(n):
        L[i] = M[i] + log(Z[i])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += exp(X[i, j] - L[i]) * V[j]
