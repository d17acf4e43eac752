# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""One-dimensional convolution, channels last."""


def conv1d(X: a[n, w, ci], W: const[b[kw, ci, co]], Y: acc[n, wo, co],
           *, n=1, w=256, ci=64, co=64, kw=3, stride=1, pad=1, dilation=1, a="f32", b="f32", acc="f32"):
    """Y = X * W, zero outside."""
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    for z, x, o in grid(n, wo, co):
        Y[z, x, o] = 0
        for s, c in grid(kw, ci):
            if 0 <= x * stride + s * dilation - pad < w:
                Y[z, x, o] += acc(X[z, x * stride + s * dilation - pad, c]) * acc(W[s, c, o])


def conv1d_grouped(X: a[n, w, ci], W: const[b[kw, cig, co]], Y: acc[n, wo, co],
                   *, n=1, w=256, ci=64, co=64, kw=3, stride=1, pad=1, dilation=1, groups=2, a="f32", b="f32", acc="f32"):
    """Y = X * W in groups of channels, zero outside."""
    wo = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    cig = ci // groups
    cog = co // groups
    assume(ci % groups == 0)
    assume(co % groups == 0)
    for z, x, g, o in grid(n, wo, groups, cog):
        Y[z, x, g * cog + o] = 0
        for s, c in grid(kw, cig):
            if 0 <= x * stride + s * dilation - pad < w:
                Y[z, x, g * cog + o] += acc(X[z, x * stride + s * dilation - pad, g * cig + c]) * acc(W[s, c, g * cog + o])
