# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A convolution of 3 by 3, a ramp from 0 to 6, and a convolution of 1 by 1; with another of 1 by 1 before them.

    autosched rewrite examples/fused/separable.py:depthwise_pointwise
    autosched tune examples/fused/separable.py:conv2d_pointwise -D h=28 -D w=28
"""


def depthwise_pointwise(X: t[n, h, w, c], D: const[t[3, 3, c]], P: const[t[c, co]], Y: acc[n, h, w, co],
                        *, n=1, h=14, w=14, c=16, co=24, t="f32", acc="f32"):
    """relu6(X * D, each channel by itself) * P."""
    A: acc[n, h, w, c]
    B: t[n, h, w, c]
    for z, y, x, o in grid(n, h, w, c):
        A[z, y, x, o] = 0
        for r, s in grid(3, 3):
            u = y + r - 1
            v = x + s - 1
            if 0 <= u < h and 0 <= v < w:
                A[z, y, x, o] += acc(X[z, u, v, o]) * acc(D[r, s, o])
    for z, y, x, o in grid(n, h, w, c):
        B[z, y, x, o] = t(min(max(A[z, y, x, o], 0), 6))
    for z, y, x, o in grid(n, h, w, co):
        Y[z, y, x, o] = 0
        for q in range(c):
            Y[z, y, x, o] += acc(B[z, y, x, q]) * acc(P[q, o])


def conv2d_pointwise(X: t[n, h, w, ci], D: const[t[3, 3, ci, c]], P: const[t[c, co]], Y: acc[n, h, w, co],
                     *, n=1, h=14, w=14, ci=8, c=16, co=24, t="f32", acc="f32"):
    """relu6(X * D) * P."""
    A: acc[n, h, w, c]
    B: t[n, h, w, c]
    for z, y, x, o in grid(n, h, w, c):
        A[z, y, x, o] = 0
        for r, s, q in grid(3, 3, ci):
            u = y + r - 1
            v = x + s - 1
            if 0 <= u < h and 0 <= v < w:
                A[z, y, x, o] += acc(X[z, u, v, q]) * acc(D[r, s, q, o])
    for z, y, x, o in grid(n, h, w, c):
        B[z, y, x, o] = t(min(max(A[z, y, x, o], 0), 6))
    for z, y, x, o in grid(n, h, w, co):
        Y[z, y, x, o] = 0
        for q in range(c):
            Y[z, y, x, o] += acc(B[z, y, x, q]) * acc(P[q, o])


def inverted_residual(X: t[n, h * st, w * st, ci], E: const[t[ci, c]], D: const[t[3, 3, c]], P: const[t[c, co]],
                      Y: acc[n, h, w, co], *, n=1, h=14, w=14, st=1, ci=8, c=48, co=8, t="f32", acc="f32"):
    """relu6(relu6(X * E) * D, each channel by itself, every st-th position) * P."""
    F: acc[n, h * st, w * st, c]
    G: t[n, h * st, w * st, c]
    A: acc[n, h, w, c]
    B: t[n, h, w, c]
    for z, y, x, o in grid(n, h * st, w * st, c):
        F[z, y, x, o] = 0
        for q in range(ci):
            F[z, y, x, o] += acc(X[z, y, x, q]) * acc(E[q, o])
    for z, y, x, o in grid(n, h * st, w * st, c):
        G[z, y, x, o] = t(min(max(F[z, y, x, o], 0), 6))
    for z, y, x, o in grid(n, h, w, c):
        A[z, y, x, o] = 0
        for r, s in grid(3, 3):
            u = y * st + r - 1
            v = x * st + s - 1
            if 0 <= u < h * st and 0 <= v < w * st:
                A[z, y, x, o] += acc(G[z, u, v, o]) * acc(D[r, s, o])
    for z, y, x, o in grid(n, h, w, c):
        B[z, y, x, o] = t(min(max(A[z, y, x, o], 0), 6))
    for z, y, x, o in grid(n, h, w, co):
        Y[z, y, x, o] = 0
        for q in range(c):
            Y[z, y, x, o] += acc(B[z, y, x, q]) * acc(P[q, o])
