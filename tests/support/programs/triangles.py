"""Programs whose loops run to a bound that outer loops move."""

TRIANGLES = {
    "causal attention": """
def f(Q: f32[n, d], K: f32[n, d], V: f32[n, d], O: f32[n, d], *, n=20, d=8):
    S: f32[n, n]
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        for j in range(i + 1):
            S[i, j] = 0
            for p in range(d):
                S[i, j] += Q[i, p] * K[j, p]
        M[i] = -inf
        for j in range(i + 1):
            M[i] = max(M[i], S[i, j])
        for j in range(i + 1):
            S[i, j] = exp(S[i, j] - M[i])
        Z[i] = 0
        for j in range(i + 1):
            Z[i] += S[i, j]
        for c in range(d):
            O[i, c] = 0
        for j in range(i + 1):
            for c in range(d):
                O[i, c] += S[i, j] / Z[i] * V[j, c]
""",
    "rows of a triangle": """
def f(X: f32[n, n, d], Y: f32[n, n, d], M: f32[n, n], *, n=6, d=40):
    for a in range(n):
        for i in range(a + 1):
            M[a, i] = -inf
            for c in range(d):
                M[a, i] = max(M[a, i], X[a, i, c])
            for c in range(d):
                Y[a, i, c] = X[a, i, c] - M[a, i]
""",
    "products of a row": """
def f(X: f32[n, d], Y: f32[n, d], T: f32[n, n, d], Z: f32[n, d], *, n=8, d=64):
    for i in range(n):
        for j in range(i + 1):
            for c in range(d):
                T[i, j, c] = X[i, c] * Y[j, c]
        for c in range(d):
            Z[i, c] = 0
        for j in range(i + 1):
            for c in range(d):
                Z[i, c] += T[i, j, c]
""",
    "forward substitution": """
def f(L: f32[n, n], X: f32[n, m], B: f32[n, m], *, n=24, m=20):
    for i in range(n):
        for c in range(m):
            X[i, c] = B[i, c]
        for j in range(i):
            for c in range(m):
                X[i, c] -= L[i, j] * X[j, c]
""",
    "a product's lower half": """
def f(A: f32[n, n], B: f32[n, m], C: f32[n, m], *, n=24, m=40):
    for i, j in grid(n, m):
        C[i, j] = 0
        for p in range(i + 1):
            C[i, j] += A[i, p] * B[p, j]
""",
}
