# ruff: noqa: E501  (bodies stand on one line)
"""Programs that write an output in parts; `IN_PARTS` wholly, before they read it, `NOT_WHOLE` not."""

IN_PARTS = {
    "halves of a rotation": """
def f(X: f32[s, d], C: f32[s, k], S: f32[s, k], Y: f32[s, d], *, s=6, k=16, d=32):
    for t, j in grid(s, k):
        Y[t, j] = X[t, j] * C[t, j] - X[t, j + k] * S[t, j]
        Y[t, j + k] = X[t, j + k] * C[t, j] + X[t, j] * S[t, j]
""",
    "pairs of a rotation": """
def f(X: f32[s, d], C: f32[s, k], S: f32[s, k], Y: f32[s, d], *, s=6, k=16, d=32):
    for t, j in grid(s, k):
        Y[t, 2 * j] = X[t, 2 * j] * C[t, j] - X[t, 2 * j + 1] * S[t, j]
    for t, j in grid(s, k):
        Y[t, 2 * j + 1] = X[t, 2 * j + 1] * C[t, j] + X[t, 2 * j] * S[t, j]
""",
    "prefix sums": """
def f(A: f32[m, n], Y: f32[m, n], *, m=5, n=40):
    for r in range(m):
        Y[r, 0] = A[r, 0]
        for i in range(1, n):
            Y[r, i] = Y[r, i - 1] + A[r, i]
""",
    "sums of what follows": """
def f(A: f32[n], Y: f32[n], *, n=50):
    for i in range(n):
        if i == 0:
            Y[n - 1] = A[n - 1]
        if i > 0:
            Y[n - 1 - i] = Y[n - i] + A[n - 1 - i]
""",
    "a Fourier transform's steps": """
def f(X: f32[n], Y: f32[n], *, n=64):
    T: f32[n]
    for k in range(32):
        Y[2 * k] = X[k] + X[k + 32]
        Y[2 * k + 1] = X[k] - X[k + 32]
    for q, k in grid(16, 2):
        T[4 * q + k] = Y[4 * q + k] + Y[4 * q + k + 2]
        T[4 * q + k + 2] = Y[4 * q + k] - Y[4 * q + k + 2]
    for k in range(n):
        Y[k] = T[k] * 0.5
""",
    "tiles of a fast convolution": """
def f(M: f32[h, w, 4, c], Y: f32[y, x, c], *, h=3, w=4, y=6, x=8, c=16):
    for i, j, o in grid(h, w, c):
        Y[2 * i, 2 * j, o] = M[i, j, 0, o] + M[i, j, 1, o]
        Y[2 * i, 2 * j + 1, o] = M[i, j, 1, o] - M[i, j, 2, o]
        Y[2 * i + 1, 2 * j, o] = M[i, j, 2, o] + M[i, j, 3, o]
        Y[2 * i + 1, 2 * j + 1, o] = M[i, j, 0, o] - M[i, j, 3, o]
""",
    "two triangles": """
def f(A: f32[n, n], Y: f32[n, n], *, n=20):
    for i in range(n):
        for j in range(i + 1):
            Y[i, j] = A[i, j]
        for j in range(i + 1, n):
            Y[i, j] = A[j, i]
""",
    "sums in parts": """
def f(A: f32[n, k], B: f32[k, n], Y: f32[m, n], *, n=16, m=32, k=20):
    for i, j in grid(n, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += A[i, p] * B[p, j]
    for i, j in grid(n, n):
        Y[i + n, j] = 0
        for p in range(k):
            Y[i + n, j] += A[j, p] * B[p, i]
""",
}
NOT_WHOLE = {
    "an element is left": "for i in range(7):\n        Y[i] = A[i]",
    "every other one is left": "for i in range(4):\n        Y[2 * i] = A[i]\n    for i in range(2):\n        Y[4 * i + 1] = A[i]",
    "read first": "for i in range(1, 8):\n        Y[i] = Y[i - 1] + A[i]\n    Y[0] = A[0]",
    "read before its turn": "Y[7] = A[0]\n    for i in range(7):\n        Y[i] = Y[i + 1] + A[i]",
    "data decide": "for i in range(8):\n        if A[i] > 0:\n            Y[i] = 1\n        if A[i] <= 0:\n            Y[i] = 2",
    "updated alone": "Y[0] = 0\n    for i in range(8):\n        Y[i] += A[i]",
    "itself": "for i in range(8):\n        Y[i] = Y[i] + A[i]",
    "in later turns only": "for t, i in grid(2, 8):\n        if t == 1:\n            Y[i] += A[i]\n        if t == 0 and i < 7:\n            Y[i] = A[i]",
}
"""Bodies of `def f(A: f32[8], Y: f32[8])`."""
