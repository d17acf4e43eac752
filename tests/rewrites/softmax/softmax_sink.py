# Softmax with a sink: the sum starts from what is no element.
# one pass: {stages: M Z, numerics: rescaled, factors: {Z: exp(M - M')}}
def softmax_sink(X: f32[n, l], sink: f32, Z: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = sink
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        Z[i] = exp(sink - M[i])
        for j in range(l):
            Z[i] += exp(X[i, j] - M[i])
