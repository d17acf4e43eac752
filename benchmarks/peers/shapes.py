"""The built-in workloads as libraries see them: a product or a convolution with a few options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.task import Array, Task

PRODUCTS = {"matmul": "", "batch_matmul": "", "matmul_bias_relu": "relu", "matmul_bias_gelu": "gelu",
            "matmul_bias_gelu_tanh": "gelu_tanh", "matmul_requant": "requantise"}  # fmt: skip


@dataclass(frozen=True)
class Product:
    """`a` [..., m, k] times `b` [..., k, n] (views), then `after`: nothing, relu, gelu, gelu_tanh, or requantise with
    one scale a column. `bias` [n] is the bias or the scale."""

    a: Array
    b: Array
    bias: Array | None
    after: str
    out: str
    const: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.a.shape[:-1], self.b.shape[-1])


def product(task: Task) -> Product | None:
    """The task as a product; None where it is something else."""
    name = task.program.name.removesuffix("_to")
    turned = next((s for s in ("nt", "tn", "tt") if name.endswith(f"_{s}")), "nn")
    name = name.removesuffix(f"_{turned}")
    if name not in PRODUCTS:
        return None
    a, b = task.arrays["A"], task.arrays["B"]
    return Product(
        a.swapaxes(-1, -2) if turned[0] == "t" else a,
        b.swapaxes(-1, -2) if turned[1] == "t" else b,
        task.arrays.get("D"),
        PRODUCTS[name],
        task.dtype("C"),
        task.program.tensors["B"].const,
    )


@dataclass(frozen=True)
class Convolution:
    """`x` [n, c, h, w] and `w` [co, ci / groups, kh, kw] are views of the program's arrays; `nchw` says in which order
    those lie. `bias` [co] and `residual` [n, co, ho, wo] come before `relu`."""

    x: Array
    w: Array
    bias: Array | None
    residual: Array | None
    relu: bool
    nchw: bool
    stride: int
    pad: int
    dilation: int
    groups: int
    out: str
    const: bool

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the result: n, co, ho, wo."""
        reach = [self.dilation * (k - 1) + 1 for k in self.w.shape[2:]]
        ho, wo = ((e + 2 * self.pad - r) // self.stride + 1 for e, r in zip(self.x.shape[2:], reach, strict=True))
        return self.x.shape[0], self.w.shape[0], ho, wo

    def logical(self, out: Array) -> Array:
        """The program's output as [n, co, ho, wo]."""
        return out if self.nchw else out.transpose(0, 3, 1, 2)

    def empty(self, dtype: Any) -> Array:
        """A result in the program's order, seen as [n, co, ho, wo]."""
        n, c, h, w = self.shape
        return np.zeros((n, c, h, w), dtype) if self.nchw else np.zeros((n, h, w, c), dtype).transpose(0, 3, 1, 2)


def convolution(task: Task) -> Convolution | None:
    """The task as a two-dimensional convolution; None where it is something else."""
    program, sizes = task.program, task.program.sizes
    name = program.name
    if not name.startswith(("conv2d", "depthwise_conv2d")) or "transposed" in name:
        return None
    nchw = "_nchw" in name
    x, w, r = task.arrays["X"], task.arrays["W"], task.arrays.get("R")
    if not nchw:
        x, r = x.transpose(0, 3, 1, 2), None if r is None else r.transpose(0, 3, 1, 2)
    if name.startswith("depthwise"):
        w = w[:, None] if nchw else w.transpose(2, 0, 1)[:, None]
    elif not nchw:
        w = w.transpose(3, 2, 0, 1)
    return Convolution(
        x, w, task.arrays.get("D"), r, "relu" in name, nchw, sizes["stride"], sizes["pad"], sizes.get("dilation", 1),
        x.shape[1] // w.shape[1], task.dtype("Y"), program.tensors["W"].const,
    )  # fmt: skip
