# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Three-dimensional convolution, channels last (NDHWC) or first (NCDHW)."""


def conv3d(X: a[n, d, h, w, ci], W: const[b[kd, kh, kw, ci, co]], Y: acc[n, do, ho, wo, co],
           *, n=1, d=16, h=28, w=28, ci=32, co=32, kd=3, kh=3, kw=3, stride=1, pad=1, dilation=1,
           a="f32", b="f32", acc="f32"):
    """Y = X * W, zero outside."""
    do = (d + 2 * pad - dilation * (kd - 1) - 1) // stride + 1
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    for z, e, y, x, o in grid(n, do, ho, wo, co):
        Y[z, e, y, x, o] = 0
        for q, r, s, c in grid(kd, kh, kw, ci):
            t = e * stride + q * dilation - pad
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= t < d and 0 <= u < h and 0 <= v < w:
                Y[z, e, y, x, o] += acc(X[z, t, u, v, c]) * acc(W[q, r, s, c, o])


def conv3d_nchw(X: a[n, ci, d, h, w], W: const[b[co, ci, kd, kh, kw]], Y: acc[n, co, do, ho, wo],
           *, n=1, d=16, h=28, w=28, ci=32, co=32, kd=3, kh=3, kw=3, stride=1, pad=1, dilation=1,
           a="f32", b="f32", acc="f32"):
    """Y = X * W, zero outside, channels first."""
    do = (d + 2 * pad - dilation * (kd - 1) - 1) // stride + 1
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    for z, o, e, y, x in grid(n, co, do, ho, wo):
        Y[z, o, e, y, x] = 0
        for c, q, r, s in grid(ci, kd, kh, kw):
            t = e * stride + q * dilation - pad
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= t < d and 0 <= u < h and 0 <= v < w:
                Y[z, o, e, y, x] += acc(X[z, c, t, u, v]) * acc(W[o, c, q, r, s])
