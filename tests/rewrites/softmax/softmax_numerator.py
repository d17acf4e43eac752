# Softmax that keeps the numerators and sums these.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def softmax_numerator(X: f32[n, l], Y: f32[n, l], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    E: f32[n, l]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i, j in grid(n, l):
        E[i, j] = exp(X[i, j] - M[i])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += E[i, j]
    for i, j in grid(n, l):
        Y[i, j] = E[i, j] / Z[i]
