# RMS norm: no cascade.
# no cascade
def rms_norm(X: f32[n, l], Y: f32[n, l], *, n=4, l=20):
    W: f32[n]
    for i in range(n):
        W[i] = 0
        for j in range(l):
            W[i] += X[i, j] * X[i, j]
    for i, j in grid(n, l):
        Y[i, j] = X[i, j] * rsqrt(W[i] / 20 + 0.00001)
