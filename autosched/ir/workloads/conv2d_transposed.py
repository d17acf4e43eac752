# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Transposed convolution (the gradient of conv2d with respect to its input), channels last or first."""


def conv2d_transposed(X: a[n, h, w, ci], W: const[b[kh, kw, ci, co]], Y: acc[n, ho, wo, co],
           *, n=1, h=28, w=28, ci=64, co=64, kh=4, kw=4, stride=2, pad=1, a="f32", b="f32", acc="f32"):
    """Every input point adds W, scaled by it, to the window of Y that begins at stride times its place."""
    ho = (h - 1) * stride + kh - 2 * pad
    wo = (w - 1) * stride + kw - 2 * pad
    for z, y, x, o in grid(n, ho, wo, co):
        Y[z, y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            u = (y + pad - r) // stride
            v = (x + pad - s) // stride
            if (y + pad - r) % stride == 0 and (x + pad - s) % stride == 0 and 0 <= u < h and 0 <= v < w:
                Y[z, y, x, o] += acc(X[z, u, v, c]) * acc(W[r, s, c, o])


def conv2d_transposed_nchw(X: a[n, ci, h, w], W: const[b[ci, co, kh, kw]], Y: acc[n, co, ho, wo],
           *, n=1, h=28, w=28, ci=64, co=64, kh=4, kw=4, stride=2, pad=1, a="f32", b="f32", acc="f32"):
    """The same, channels first."""
    ho = (h - 1) * stride + kh - 2 * pad
    wo = (w - 1) * stride + kw - 2 * pad
    for z, o, y, x in grid(n, co, ho, wo):
        Y[z, o, y, x] = 0
        for c, r, s in grid(ci, kh, kw):
            u = (y + pad - r) // stride
            v = (x + pad - s) // stride
            if (y + pad - r) % stride == 0 and (x + pad - s) % stride == 0 and 0 <= u < h and 0 <= v < w:
                Y[z, o, y, x] += acc(X[z, c, u, v]) * acc(W[c, o, r, s])
