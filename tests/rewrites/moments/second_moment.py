# The weighted second moment about a weighted mean.
# one pass: {stages: W U B, numerics: real, factors: {}, deferred: B}
def second_moment(X: f32[n, l], V: f32[l], B: f32[n], *, n=4, l=20):
    W: f32[n]
    U: f32[n]
    for i in range(n):
        W[i] = 0
        for j in range(l):
            W[i] += V[j] * V[j]
    for i in range(n):
        U[i] = 0
        for j in range(l):
            U[i] += V[j] * V[j] * X[i, j]
    for i in range(n):
        B[i] = 0
        for j in range(l):
            B[i] += V[j] * V[j] * (X[i, j] - U[i] / W[i]) * (X[i, j] - U[i] / W[i])
