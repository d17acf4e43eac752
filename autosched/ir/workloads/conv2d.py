# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Two-dimensional convolution, channels last (NHWC) or first (NCHW), whole or in groups."""


def conv2d(X: a[n, h, w, ci], W: const[b[kh, kw, ci, co]], Y: acc[n, ho, wo, co],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, dilation=1,
           a="f32", b="f32", acc="f32"):
    """Y = X * W, zero outside."""
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    for z, y, x, o in grid(n, ho, wo, co):
        Y[z, y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= u < h and 0 <= v < w:
                Y[z, y, x, o] += acc(X[z, u, v, c]) * acc(W[r, s, c, o])


def conv2d_nchw(X: a[n, ci, h, w], W: const[b[co, ci, kh, kw]], Y: acc[n, co, ho, wo],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, dilation=1,
           a="f32", b="f32", acc="f32"):
    """Y = X * W, zero outside, channels first."""
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    for z, o, y, x in grid(n, co, ho, wo):
        Y[z, o, y, x] = 0
        for c, r, s in grid(ci, kh, kw):
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= u < h and 0 <= v < w:
                Y[z, o, y, x] += acc(X[z, c, u, v]) * acc(W[o, c, r, s])


def conv2d_grouped(X: a[n, h, w, ci], W: const[b[kh, kw, cig, co]], Y: acc[n, ho, wo, co],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, dilation=1, groups=2,
           a="f32", b="f32", acc="f32"):
    """Y = X * W in groups of channels, zero outside."""
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    cig = ci // groups
    cog = co // groups
    assume(ci % groups == 0)
    assume(co % groups == 0)
    for z, y, x, g, o in grid(n, ho, wo, groups, cog):
        Y[z, y, x, g * cog + o] = 0
        for r, s, c in grid(kh, kw, cig):
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= u < h and 0 <= v < w:
                Y[z, y, x, g * cog + o] += acc(X[z, u, v, g * cig + c]) * acc(W[r, s, c, g * cog + o])


def conv2d_nchw_grouped(X: a[n, ci, h, w], W: const[b[co, cig, kh, kw]], Y: acc[n, co, ho, wo],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, dilation=1, groups=2,
           a="f32", b="f32", acc="f32"):
    """Y = X * W in groups of channels, zero outside, channels first."""
    ho = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    cig = ci // groups
    cog = co // groups
    assume(ci % groups == 0)
    assume(co % groups == 0)
    for z, g, o, y, x in grid(n, groups, cog, ho, wo):
        Y[z, g * cog + o, y, x] = 0
        for c, r, s in grid(cig, kh, kw):
            u = y * stride + r * dilation - pad
            v = x * stride + s * dilation - pad
            if 0 <= u < h and 0 <= v < w:
                Y[z, g * cog + o, y, x] += acc(X[z, g * cig + c, u, v]) * acc(W[g * cog + o, c, r, s])
