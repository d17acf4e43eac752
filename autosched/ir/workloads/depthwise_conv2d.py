# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Convolution of every channel by itself, channels last (NHWC) or first (NCHW)."""


def depthwise_conv2d(X: a[n, h, w, c], W: const[b[kh, kw, c]], Y: acc[n, ho, wo, c],
           *, n=1, h=56, w=56, c=64, kh=3, kw=3, stride=1, pad=1, dilation=1, a="f32", b="f32", acc="f32"):
    """Y[..., o] = X[..., o] * W[..., o], zero outside."""
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    for z, y, x, o in grid(n, ho, wo, c):
        Y[z, y, x, o] = 0
        for r, s in grid(kh, kw):
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= u < h and 0 <= v < w:
                Y[z, y, x, o] += acc(X[z, u, v, o]) * acc(W[r, s, o])


def depthwise_conv2d_nchw(X: a[n, c, h, w], W: const[b[c, kh, kw]], Y: acc[n, c, ho, wo],
           *, n=1, h=56, w=56, c=64, kh=3, kw=3, stride=1, pad=1, dilation=1, a="f32", b="f32", acc="f32"):
    """Y[:, o] = X[:, o] * W[o], zero outside."""
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    for z, o, y, x in grid(n, c, ho, wo):
        Y[z, o, y, x] = 0
        for r, s in grid(kh, kw):
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= u < h and 0 <= v < w:
                Y[z, o, y, x] += acc(X[z, o, u, v]) * acc(W[o, r, s])
