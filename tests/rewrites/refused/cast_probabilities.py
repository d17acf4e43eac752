# Probabilities rounded to bf16 before they are used.
# refused: {stage: A, code: CAST}
# at real, one pass: {stages: M A, numerics: real, factors: {A: exp(M - M')}}
def cast_probabilities(X: f32[n, l], V: f32[l], A: f32[n], *, n=4, l=20):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
    for i in range(n):
        A[i] = 0
        for j in range(l):
            A[i] += f32(bf16(exp(X[i, j] - M[i]))) * V[j]
