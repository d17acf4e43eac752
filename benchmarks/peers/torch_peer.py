"""PyTorch for CPUs: oneDNN inside for packed weights and bf16, MKL for plain f32 products, its own for rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.peers.shapes import Convolution, Product, convolution, product
from benchmarks.peers.task import Array, Contender, Task, UnavailableError, tolerance

FAMILY = "PyTorch"
FEW_ROWS = 16
_AFTER = {"": "none", "relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu"}


def version() -> dict[str, str]:
    try:
        import torch
    except ImportError:
        return {"torch": "not installed"}
    inside = next((w for w in torch.__config__.show().split("- ") if "DNN v" in w), "").split(" (")[0]
    return {"torch": torch.__version__, "oneDNN in torch": inside.split("DNN v")[-1].strip()}


def contenders(task: Task) -> Iterator[Contender]:
    try:
        import torch
    except ImportError:
        raise UnavailableError("torch is not installed: pip install 'autosched[bench]'") from None
    torch.set_num_threads(task.threads)
    torch.set_grad_enabled(False)
    if (p := product(task)) is not None:
        yield from _products(torch, task, p)
    elif (c := convolution(task)) is not None:
        yield from _convolutions(torch, task, c)
    elif task.program.name in ("softmax", "layer_norm"):
        yield from _rows(torch, task)


class Kept:
    """A call that keeps its last result."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.last: Any = None

    def __call__(self) -> None:
        self.last = self.call()

    def result(self) -> Array:
        out = self.last.to_dense() if self.last.is_mkldnn else self.last
        return np.asarray(out.float().numpy() if out.dtype.is_floating_point else out.numpy())


def _contender(name: str, call: Callable[[], Any], dtype: str, **more: Any) -> Contender:
    kept = Kept(call)
    return Contender(f"torch {name}", FAMILY, kept, kept.result, tolerance=tolerance(dtype), **more)


def tensor(torch: Any, array: Array) -> Any:
    """Shares memory; torch knows ml_dtypes' bfloat16 by its bits only."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _products(torch: Any, task: Task, p: Product) -> Iterator[Contender]:
    a, b, types = tensor(torch, p.a), tensor(torch, p.b), (task.dtype("A"), task.dtype("B"))
    bias = None if p.bias is None else tensor(torch, p.bias)
    ops = torch.ops.mkldnn
    match types, p.after:
        case (("s8", "s8"), ""):
            if a.shape[0] <= FEW_ROWS:
                raise UnavailableError(f"_int_mm is not made for {FEW_ROWS} rows or fewer")
            yield _contender("_int_mm", lambda: torch._int_mm(a, b), "s32")
        case (("f32", "f32") | ("bf16", "bf16"), after) if after in _AFTER:
            kind = types[0]
            packed = task.packed and p.const
            if kind == "bf16" and not ops._is_mkldnn_bf16_supported():
                yield _through_f32(torch, task, a, b, packed, p.after)
                return
            if packed and a.ndim == 2:
                weight = ops._reorder_linear_weight(b.t().contiguous(), a.shape[0])
                form = {"gelu": "none", "gelu_tanh": "tanh"}.get(after, "")
                pointwise = ops._linear_pointwise
                yield _contender("packed", lambda: pointwise(a, weight, bias, _AFTER[after], [], form), kind)
                if kind == "f32" and not after:
                    am, wm = a.to_mkldnn(), b.t().contiguous().to_mkldnn()
                    yield _contender("mkldnn_linear", lambda: torch._C._nn.mkldnn_linear(am, wm, None), kind)
            steps = {"": lambda x: x, "relu": torch.relu_, "gelu": torch.nn.functional.gelu,
                     "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh")}  # fmt: skip
            join = (lambda: torch.matmul(a, b)) if bias is None else (lambda: torch.addmm(bias, a, b))
            yield _contender("plain", lambda: steps[after](join()), kind)
        case _:
            raise UnavailableError(f"no product of {types[0]} and {types[1]} with {p.after or 'nothing'} after it")


def _through_f32(torch: Any, task: Task, a: Any, b: Any, packed: bool, after: str) -> Contender:
    """What a user of a CPU without bf16 would call: torch's own product of that type takes 2 s for 512³ (Zen 3)."""
    if after:
        raise UnavailableError(f"no product of bf16 with {after} after it on this CPU")
    wide = b.float() if packed else None
    out = torch.bfloat16 if task.dtype(task.program.outputs[0]) == "bf16" else torch.float32
    call = lambda: torch.matmul(a.float(), b.float() if wide is None else wide).to(out)  # noqa: E731
    return _contender("through f32", call, "bf16")


def _convolutions(torch: Any, task: Task, c: Convolution) -> Iterator[Contender]:
    if task.dtype("X") != "f32" or c.out != "f32":
        raise UnavailableError("int8 convolutions go through quantised tensors, and are slower than oneDNN's own")
    x, w = torch.from_numpy(c.x), torch.from_numpy(np.ascontiguousarray(c.w))
    bias = None if c.bias is None else torch.from_numpy(c.bias)
    other = None if c.residual is None else torch.from_numpy(c.residual)
    pads, steps, wide = [c.pad] * 2, [c.stride] * 2, [c.dilation] * 2
    ops, order = torch.ops.mkldnn, "NCHW" if c.nchw else "NHWC"

    def fused(weight: Any) -> Any:
        if other is not None:
            pointwise = ops._convolution_pointwise.binary
            return pointwise(x, other, weight, bias, pads, steps, wide, c.groups, "add", 1.0, "relu", [], None)
        after = "relu" if c.relu else "none"
        return ops._convolution_pointwise(x, weight, bias, pads, steps, wide, c.groups, after, [], "")

    def plain() -> Any:
        found = torch.conv2d(x, w, bias, steps, pads, wide, c.groups)
        if other is not None:
            found += other
        return torch.relu_(found) if c.relu else found

    if task.packed:
        packed = ops._reorder_convolution_weight(w, pads, steps, wide, c.groups, list(x.shape))
        yield _contender(f"{order} packed", lambda: fused(packed), "f32", expected=c.logical)
    if not c.nchw:
        w = w.contiguous(memory_format=torch.channels_last)
    yield _contender(f"{order} plain", plain, "f32", expected=c.logical)


def _rows(torch: Any, task: Task) -> Iterator[Contender]:
    x = torch.from_numpy(task.arrays["X"])
    if task.program.name == "softmax":
        yield _contender("softmax", lambda: torch.softmax(x, 1), "f32")
        return
    g, d = torch.from_numpy(task.arrays["G"]), torch.from_numpy(task.arrays["D"])
    yield _contender("layer_norm", lambda: torch.nn.functional.layer_norm(x, (x.shape[1],), g, d, 1e-5), "f32")
