# Layer norm of rows, mean and variance divided in place.
# one pass: {stages: C W, numerics: real, factors: {}, deferred: W}
def layer_norm_in_place(X: f32[n, l], G: f32[l], Y: f32[n, l], C: f32[n], W: f32[n], *, n=4, l=20):
    for i in range(n):
        C[i] = 0
        for j in range(l):
            C[i] += X[i, j]
        C[i] = C[i] / 20
        W[i] = 0
        for j in range(l):
            W[i] += (X[i, j] - C[i]) * (X[i, j] - C[i])
        W[i] *= 0.05
        for j in range(l):
            Y[i, j] = (X[i, j] - C[i]) * rsqrt(W[i] + 0.00001) * G[j]
