# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Convolution with a folded batch norm and a ramp: the norm's scale is in W, its shift is D. With or without a residual."""


def conv2d_bias_relu(X: a[n, h, w, ci], W: const[b[kh, kw, ci, co]], D: const[acc[co]], Y: out[n, ho, wo, co],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, a="f32", b="f32", acc="f32", out="f32"):
    """Y = max(X * W + D, 0)."""
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    S: acc[n, ho, wo, co]
    for z, y, x, o in grid(n, ho, wo, co):
        S[z, y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            u = y * stride + r - pad
            v = x * stride + s - pad
            if 0 <= u < h and 0 <= v < w:
                S[z, y, x, o] += acc(X[z, u, v, c]) * acc(W[r, s, c, o])
    for z, y, x, o in grid(n, ho, wo, co):
        Y[z, y, x, o] = out(max(S[z, y, x, o] + D[o], 0))


def conv2d_bias_relu_residual(X: a[n, h, w, ci], W: const[b[kh, kw, ci, co]], D: const[acc[co]],
           R: out[n, ho, wo, co], Y: out[n, ho, wo, co],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, a="f32", b="f32", acc="f32", out="f32"):
    """Y = max(X * W + D + R, 0)."""
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    S: acc[n, ho, wo, co]
    for z, y, x, o in grid(n, ho, wo, co):
        S[z, y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            u = y * stride + r - pad
            v = x * stride + s - pad
            if 0 <= u < h and 0 <= v < w:
                S[z, y, x, o] += acc(X[z, u, v, c]) * acc(W[r, s, c, o])
    for z, y, x, o in grid(n, ho, wo, co):
        Y[z, y, x, o] = out(max(S[z, y, x, o] + D[o] + acc(R[z, y, x, o]), 0))


def conv2d_bias_relu_nchw(X: a[n, ci, h, w], W: const[b[co, ci, kh, kw]], D: const[acc[co]], Y: out[n, co, ho, wo],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, a="f32", b="f32", acc="f32", out="f32"):
    """Y = max(X * W + D, 0), channels first."""
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    S: acc[n, co, ho, wo]
    for z, o, y, x in grid(n, co, ho, wo):
        S[z, o, y, x] = 0
        for c, r, s in grid(ci, kh, kw):
            u = y * stride + r - pad
            v = x * stride + s - pad
            if 0 <= u < h and 0 <= v < w:
                S[z, o, y, x] += acc(X[z, c, u, v]) * acc(W[o, c, r, s])
    for z, o, y, x in grid(n, co, ho, wo):
        Y[z, o, y, x] = out(max(S[z, o, y, x] + D[o], 0))


def conv2d_bias_relu_nchw_residual(X: a[n, ci, h, w], W: const[b[co, ci, kh, kw]], D: const[acc[co]],
           R: out[n, co, ho, wo], Y: out[n, co, ho, wo],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, a="f32", b="f32", acc="f32", out="f32"):
    """Y = max(X * W + D + R, 0), channels first."""
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    S: acc[n, co, ho, wo]
    for z, o, y, x in grid(n, co, ho, wo):
        S[z, o, y, x] = 0
        for c, r, s in grid(ci, kh, kw):
            u = y * stride + r - pad
            v = x * stride + s - pad
            if 0 <= u < h and 0 <= v < w:
                S[z, o, y, x] += acc(X[z, c, u, v]) * acc(W[o, c, r, s])
    for z, o, y, x in grid(n, co, ho, wo):
        Y[z, o, y, x] = out(max(S[z, o, y, x] + D[o] + acc(R[z, o, y, x]), 0))
