# Layer norm of rows, its mean an elementwise stage.
# one pass: {stages: C W, numerics: real, factors: {}, deferred: W}
def layer_norm(X: f32[n, l], G: f32[l], Y: f32[n, l], *, n=4, l=20):
    C: f32[n]
    U: f32[n]
    W: f32[n]
    for i in range(n):
        C[i] = 0
        for j in range(l):
            C[i] += X[i, j]
        U[i] = C[i] / 20
        W[i] = 0
        for j in range(l):
            W[i] += (X[i, j] - U[i]) * (X[i, j] - U[i])
        for j in range(l):
            Y[i, j] = (X[i, j] - U[i]) * rsqrt(W[i] / 20 + 0.00001) * G[j]
