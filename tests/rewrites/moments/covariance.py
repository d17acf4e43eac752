# Covariance of centred columns: four states.
# one pass: {stages: U W C, numerics: real, factors: {}, deferred: C}
def covariance(X: f32[l, n], C: f32[n, n], *, n=4, l=20):
    U: f32[n]
    W: f32[n]
    for i in range(n):
        U[i] = 0
        for j in range(l):
            U[i] += X[j, i]
    for i in range(n):
        W[i] = 0
        for j in range(l):
            W[i] += X[j, i]
    for a, b in grid(n, n):
        C[a, b] = 0
        for j in range(l):
            C[a, b] += (X[j, a] - U[a] / 20) * (X[j, b] - W[b] / 20)
