"""oneDNN itself: packed constants, or everything as it lies; fused through its post-operations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.peers import onednn_library as dnnl
from benchmarks.peers.shapes import Convolution, Product, convolution, product
from benchmarks.peers.task import Array, Contender, Task, UnavailableError, tolerance

FAMILY = "oneDNN"
Memories = dict[int, ctypes.c_void_p]


def version() -> dict[str, str]:
    try:
        return {"oneDNN": dnnl.library().version}
    except UnavailableError as missing:
        return {"oneDNN": str(missing)}


def contenders(task: Task) -> Iterator[Contender]:
    one = dnnl.library()
    if (p := product(task)) is not None:
        yield from _products(one, task, p)
    elif (c := convolution(task)) is not None:
        yield from _convolutions(one, task, c)
    elif task.program.name in ("softmax", "layer_norm"):
        yield from _rows(one, task)


def _products(one: dnnl.OneDnn, task: Task, p: Product) -> Iterator[Contender]:
    out = np.zeros(p.shape, task.program.tensors["C"].dtype.numpy)
    requantise = p.after == "requantise"
    weights_scale = {dnnl.WEIGHTS: 1 << (p.b.ndim - 1)} if requantise else {}
    attributes = one.attributes(p.after if p.after in dnnl.ELTWISE else "", scales=weights_scale)
    memories: Memories = {dnnl.SRC: one.memory(one.desc(p.a), p.a)}
    bias = None
    if requantise:
        assert p.bias is not None
        memories[dnnl.ATTR_SCALES | dnnl.WEIGHTS] = one.memory(one.desc(p.bias), p.bias)
    elif p.bias is not None:
        row = p.bias.reshape((1,) * (p.b.ndim - 1) + (-1,))
        bias = one.desc(row)
        memories[dnnl.BIAS] = one.memory(bias, row)

    def make(weights: ctypes.c_void_p) -> ctypes.c_void_p:
        return one.primitive_desc("matmul", one.desc(p.a), weights, bias, one.desc(out), attributes)

    # A scale and a rounding may turn one result by one.
    allowed = 1.0 if requantise else tolerance(p.out)
    if task.packed and p.const:
        call, _ = _packed(one, make(one.any(p.b)), p.b, memories, out)
        yield Contender("oneDNN packed", FAMILY, call, lambda: out, tolerance=allowed)
    plain = make(one.desc(p.b))
    call = one.call(plain, memories | {dnnl.WEIGHTS: one.memory(one.desc(p.b), p.b), dnnl.DST: _target(one, out)})
    yield Contender("oneDNN plain", FAMILY, call, lambda: out, tolerance=allowed)


def _convolutions(one: dnnl.OneDnn, task: Task, c: Convolution) -> Iterator[Contender]:
    out = c.empty(task.program.tensors["Y"].dtype.numpy)
    w = c.w
    if c.groups > 1:
        w = w.reshape(c.groups, w.shape[0] // c.groups, *w.shape[1:])
    add = None if c.residual is None else one.desc(c.residual)
    attributes = one.attributes("relu" if c.relu else "", add)
    memories: Memories = {dnnl.SRC: one.memory(one.desc(c.x), c.x)}
    bias = None
    if c.bias is not None:
        bias = one.desc(c.bias)
        memories[dnnl.BIAS] = one.memory(bias, c.bias)
    if c.residual is not None and add is not None:
        memories[dnnl.ATTR_POST_OP | dnnl.SRC_1] = one.memory(add, c.residual)
    step, wide, pad = ((ctypes.c_int64 * 2)(v, v) for v in (c.stride, c.dilation - 1, c.pad))

    def make(weights: ctypes.c_void_p) -> ctypes.c_void_p:
        return one.primitive_desc(
            "convolution_forward", dnnl.INFERENCE, dnnl.CONVOLUTION_DIRECT, one.desc(c.x), weights, bias,
            one.desc(out), step, wide, pad, pad, attributes,
        )  # fmt: skip

    order = "NCHW" if c.nchw else "NHWC"
    chosen = make(one.any(w))
    reference = "reference code" if one.implementation(chosen).startswith("ref") else ""
    call, reorder = _packed(one, chosen, w, memories, out)

    def both() -> None:
        reorder()
        call()

    for name, run in ((f"{order} packed", call),) if task.packed else ((f"{order}, weights packed in the call", both),):
        yield Contender(
            f"oneDNN {name}", FAMILY, run, lambda: out, c.logical, tolerance(c.out), why_not=reference
        )


def _rows(one: dnnl.OneDnn, task: Task) -> Iterator[Contender]:
    x = task.arrays["X"]
    out = np.zeros_like(x)
    memories: Memories = {dnnl.SRC: one.memory(one.desc(x), x), dnnl.DST: _target(one, out)}
    if task.program.name == "softmax":
        made = one.primitive_desc(
            "softmax_forward", dnnl.INFERENCE, dnnl.SOFTMAX_ACCURATE, one.desc(x), one.desc(out), 1, None
        )
    else:
        for argument, name in ((dnnl.SCALE, "G"), (dnnl.SHIFT, "D")):
            memories[argument] = one.memory(one.desc(task.arrays[name]), task.arrays[name])
        made = one.primitive_desc(
            "layer_normalization_forward", dnnl.INFERENCE, one.desc(x), one.desc(out), None, ctypes.c_float(1e-5),
            dnnl.USE_SCALE | dnnl.USE_SHIFT, None,
        )  # fmt: skip
    yield Contender(f"oneDNN {task.program.name}", FAMILY, one.call(made, memories), lambda: out)


def _packed(
    one: dnnl.OneDnn, made: ctypes.c_void_p, weights: Array, memories: Memories, out: Array
) -> tuple[Callable[[], None], Callable[[], None]]:
    """The primitive on weights in the format that it chose (packed once here), and the packing by itself."""
    wanted = one.wanted(made, dnnl.QUERY_WEIGHTS)
    packed = one.memory(wanted)
    given = one.desc(weights)
    reorder = one.reorder((given, one.memory(given, weights)), (wanted, packed))
    reorder()
    return one.call(made, memories | {dnnl.WEIGHTS: packed, dnnl.DST: _target(one, out)}), reorder


def _target(one: dnnl.OneDnn, out: Array) -> ctypes.c_void_p:
    return one.memory(one.desc(out), out)
