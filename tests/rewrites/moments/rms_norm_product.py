# RMS norm and a product: the root is deferred.
# one pass: {stages: Q Y, numerics: rescaled, factors: {}, deferred: Y}
def rms_norm_product(X: f32[n, l], G: f32[l], W: f32[l, d], Y: f32[n, d], *, n=4, l=20, d=3):
    Q: f32[n]
    for i in range(n):
        Q[i] = 0
        for j in range(l):
            Q[i] += X[i, j] * X[i, j]
    for i, e in grid(n, d):
        Y[i, e] = 0
        for j in range(l):
            Y[i, e] += X[i, j] * rsqrt(Q[i] / 20 + 0.00001) * G[j] * W[j, e]
