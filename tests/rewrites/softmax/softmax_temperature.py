# Softmax with a temperature given at run time, which has to be positive.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp((M - M') / t)}, conditions: [1.0 / t >= 0.0]}
def softmax_temperature(X: f32[n, l], t: f32, Z: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp((X[i, j] - M[i]) / t)
