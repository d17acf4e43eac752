# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""What comes before the last product of each block in examples/fused/separable.py, each a kernel of its own."""


def depthwise_relu6(X: t[n, h * st, w * st, c], D: const[t[3, 3, c]], B: t[n, h, w, c],
                    *, n=1, h=14, w=14, st=1, c=16, t="f32", acc="f32"):
    """relu6(X * D), each channel by itself, every st-th position."""
    A: acc[n, h, w, c]
    for z, y, x, o in grid(n, h, w, c):
        A[z, y, x, o] = 0
        for r, s in grid(3, 3):
            u = y * st + r - 1
            v = x * st + s - 1
            if 0 <= u < h * st and 0 <= v < w * st:
                A[z, y, x, o] += acc(X[z, u, v, o]) * acc(D[r, s, o])
    for z, y, x, o in grid(n, h, w, c):
        B[z, y, x, o] = t(min(max(A[z, y, x, o], 0), 6))


def conv2d_relu6(X: t[n, h, w, ci], D: const[t[3, 3, ci, c]], B: t[n, h, w, c],
                 *, n=1, h=14, w=14, ci=8, c=16, t="f32", acc="f32"):
    """relu6(X * D)."""
    A: acc[n, h, w, c]
    for z, y, x, o in grid(n, h, w, c):
        A[z, y, x, o] = 0
        for r, s, q in grid(3, 3, ci):
            u = y + r - 1
            v = x + s - 1
            if 0 <= u < h and 0 <= v < w:
                A[z, y, x, o] += acc(X[z, u, v, q]) * acc(D[r, s, q, o])
    for z, y, x, o in grid(n, h, w, c):
        B[z, y, x, o] = t(min(max(A[z, y, x, o], 0), 6))


def pointwise_relu6(X: t[m, ci], E: const[t[ci, c]], G: t[m, c], *, m=196, ci=8, c=48, t="f32", acc="f32"):
    """relu6(X * E)."""
    F: acc[m, c]
    for i, o in grid(m, c):
        F[i, o] = 0
        for q in range(ci):
            F[i, o] += acc(X[i, q]) * acc(E[q, o])
    for i, o in grid(m, c):
        G[i, o] = t(min(max(F[i, o], 0), 6))
