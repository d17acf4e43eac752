# Variance of rows from the mean: three states whose sum cancels.
# one pass: {stages: C W, numerics: real, factors: {}, deferred: W}
def variance(X: f32[n, l], W: f32[n], *, n=4, l=20):
    C: f32[n]
    for i in range(n):
        C[i] = 0
        for j in range(l):
            C[i] += X[i, j]
    for i in range(n):
        W[i] = 0
        for j in range(l):
            W[i] += (X[i, j] - C[i] / 20) * (X[i, j] - C[i] / 20)
