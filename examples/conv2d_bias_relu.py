# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""A convolution with padding (guards), stride, and bias and ReLU fused behind it.

    autosched tune examples/conv2d_bias_relu.py -D h=28 -D w=28 -D ci=32 -D co=32
"""


def conv2d_bias_relu(X: f32[h, w, ci], W: const[f32[kh, kw, ci, co]], bias: f32[co], Y: f32[ho, wo, co],
                     *, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1):
    """Y = max(X * W + bias, 0), zero outside X."""
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    T: f32[ho, wo, co]
    for y, x, o in grid(ho, wo, co):
        T[y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            if 0 <= y * stride + r - pad < h and 0 <= x * stride + s - pad < w:
                T[y, x, o] += X[y * stride + r - pad, x * stride + s - pad, c] * W[r, s, c, o]
        Y[y, x, o] = max(T[y, x, o] + bias[o], 0.0)
