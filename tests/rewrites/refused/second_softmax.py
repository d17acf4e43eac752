# A second softmax over scores that the first one's sum is in.
# one pass: {stages: M Z N, numerics: rescaled, factors: {Z: exp(M - M')}, conditions: ['Z[i_4] > 0.0']}
# refused: {stage: B, code: NOT_SEPARABLE}
def second_softmax(X: f32[n, l], Y: f32[n, l], B: f32[n], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    N: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
    for i in range(n):
        N[i] = -inf
        for j in range(l):
            N[i] = max(N[i], Y[i, j] * Z[i])
    for i in range(n):
        B[i] = 0
        for j in range(l):
            B[i] += exp(Y[i, j] * Z[i] - N[i])
