# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Feed-forward layers: two products with an activation between, and the gated ones with three.

    autosched rewrite examples/fused/mlp.py:swiglu
    autosched tune examples/fused/mlp.py:mlp -D m=128 -D k=256 -D f=1024 -D n=256
"""


def mlp(X: t[m, k], W: const[t[k, f]], B: const[acc[f]], D: const[t[f, n]], E: const[acc[n]], Y: acc[m, n],
        *, m=32, k=64, f=128, n=64, t="f32", acc="f32"):
    """gelu(X W + B) D + E."""
    H: acc[m, f]
    P: t[m, f]
    A: acc[m, n]
    for i, j in grid(m, f):
        H[i, j] = 0
        for p in range(k):
            H[i, j] += acc(X[i, p]) * acc(W[p, j])
    for i, j in grid(m, f):
        x = H[i, j] + B[j]
        P[i, j] = t(0.5 * x * (1.0 + erf(x * 0.7071067811865476)))
    for i, j in grid(m, n):
        A[i, j] = 0
        for p in range(f):
            A[i, j] += acc(P[i, p]) * acc(D[p, j])
    for i, j in grid(m, n):
        Y[i, j] = A[i, j] + E[j]


def swiglu(X: t[m, k], W: const[t[k, f]], U: const[t[k, f]], D: const[t[f, n]], Y: acc[m, n],
           *, m=32, k=64, f=96, n=64, t="f32", acc="f32"):
    """(silu(X W) X U) D, where silu(x) = x sigmoid(x)."""
    G: acc[m, f]
    H: acc[m, f]
    P: t[m, f]
    for i, j in grid(m, f):
        G[i, j] = 0
        for p in range(k):
            G[i, j] += acc(X[i, p]) * acc(W[p, j])
    for i, j in grid(m, f):
        H[i, j] = 0
        for p in range(k):
            H[i, j] += acc(X[i, p]) * acc(U[p, j])
    for i, j in grid(m, f):
        P[i, j] = t(G[i, j] * sigmoid(G[i, j]) * H[i, j])
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(f):
            Y[i, j] += acc(P[i, p]) * acc(D[p, j])


def geglu(X: t[m, k], W: const[t[k, f]], U: const[t[k, f]], D: const[t[f, n]], Y: acc[m, n],
          *, m=32, k=64, f=96, n=64, t="f32", acc="f32"):
    """(gelu(X W) X U) D."""
    G: acc[m, f]
    H: acc[m, f]
    P: t[m, f]
    for i, j in grid(m, f):
        G[i, j] = 0
        for p in range(k):
            G[i, j] += acc(X[i, p]) * acc(W[p, j])
    for i, j in grid(m, f):
        H[i, j] = 0
        for p in range(k):
            H[i, j] += acc(X[i, p]) * acc(U[p, j])
    for i, j in grid(m, f):
        P[i, j] = t(0.5 * G[i, j] * (1.0 + erf(G[i, j] * 0.7071067811865476)) * H[i, j])
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(f):
            Y[i, j] += acc(P[i, p]) * acc(D[p, j])
