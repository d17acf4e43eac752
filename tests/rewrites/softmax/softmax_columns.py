# Softmax of columns, its loops in the order of memory.
# one pass: {stages: M.2 Z.2, numerics: rescaled, factors: {Z.2: exp(M - M')}}
def softmax_columns(X: f32[l, n], Y: f32[l, n], *, n=4, l=20):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
    for j, i in grid(l, n):
        M[i] = max(M[i], X[j, i])
    for i in range(n):
        Z[i] = 0
    for j, i in grid(l, n):
        Z[i] += exp(X[j, i] - M[i])
    for j, i in grid(l, n):
        Y[j, i] = exp(X[j, i] - M[i]) / Z[i]
