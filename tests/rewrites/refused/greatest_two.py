# The greatest two by hand, with a state of two numbers.
# refused: {stage: B, code: NOT_SEPARABLE}
def greatest_two(X: f32[n, l], A: f32[n], B: f32[n], *, n=4, l=20):
    for i in range(n):
        A[i] = -inf
        B[i] = -inf
        for j in range(l):
            B[i] = max(B[i], min(A[i], X[i, j]))
            A[i] = max(A[i], X[i, j])
