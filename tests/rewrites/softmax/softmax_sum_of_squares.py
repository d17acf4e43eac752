# The sum of squared probabilities.
# one pass: {stages: M Z G, numerics: rescaled, factors: {Z: exp(M - M'), G: exp((M - M') * 2.0)}, deferred: G}
def softmax_sum_of_squares(X: f32[n, l], G: f32[n], *, n=4, l=20):
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
        G[i] = 0
        for j in range(l):
            G[i] += exp(X[i, j] - M[i]) / Z[i] * (exp(X[i, j] - M[i]) / Z[i])
