"""Chains with a window: three lines and columns of an image, each channel by itself, a ramp, and a product."""

from __future__ import annotations

import random

from autosched.ir import parse
from autosched.ir.program import Program

CHAIN = """
def f(X: f32[{h}, w, c], D: const[f32[3, 3, c]], P: const[f32[c, co]], Y: f32[{oh}, w, co], *, w={w}, c={c}, co={co}):
    A: f32[{oh}, w, c]
    B: f32[{oh}, w, c]
    for y, x, o in grid({oh}, w, c):
        A[y, x, o] = 0
        for r, s in grid(3, 3):
            if {guard}:
                A[y, x, o] += X[y * {stride} + r * {dilation} - {top}, x + s - 1, o] * D[r, s, o]
    for y, x, o in grid({oh}, w, c):
        B[y, x, o] = min(max(A[y, x, o], 0), 6)
    for y, x, o in grid({oh}, w, co):
        Y[y, x, o] = 0
        for q in range(c):
            Y[y, x, o] += B[y, x, q] * P[q, o]
"""


def chain(
    h: int, top: int = 1, bottom: int = 1, stride: int = 1, dilation: int = 1, w: int = 6, c: int = 4, co: int = 5
) -> Program:
    """A 3x3 window of a depthwise convolution over `h` lines, a ramp, and a product; zeros above and below."""
    oh = (h + top + bottom - 2 * dilation - 1) // stride + 1
    line = f"y * {stride} + r * {dilation} - {top}"
    rows = f"0 <= {line} < {h} and " if top or bottom else ""
    text = CHAIN.format(h=h, oh=oh, top=top, stride=stride, dilation=dilation, w=w, c=c, co=co,
                        guard=f"{rows}0 <= x + s - 1 < w")  # fmt: skip
    return parse(text.lstrip(), filename="f.py")


def random_chain(seed: int) -> Program:
    """A chain of any stride, dilation and border, of few lines."""
    rng = random.Random(seed)
    stride, dilation = rng.randint(1, 2), rng.randint(1, 2)
    h = rng.randint(2 * dilation + 2 * stride + 1, 14)
    channels = {"w": rng.randint(1, 4), "c": rng.randint(1, 4), "co": rng.randint(1, 4)}
    return chain(h, rng.randint(0, 3), rng.randint(0, 3), stride, dilation, **channels)
