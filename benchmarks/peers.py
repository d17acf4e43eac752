"""Peers: the same computation by libraries. `const` operands are packed before the timed call where a library can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Call = Callable[[], Any]


def numpy_matmul(arrays: Mapping[str, Any], threads: int) -> Call:
    """`A @ B` with B as it is: numpy has no prepacking. Threads are set by the environment (see `measure`)."""
    a, b = arrays["A"], arrays["B"]
    out = np.empty((a.shape[0], b.shape[1]), a.dtype)
    return lambda: np.matmul(a, b, out=out)


def _torch(threads: int) -> Any:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def torch_linear(arrays: Mapping[str, Any], threads: int) -> Call | None:
    """oneDNN's product with a weight that was packed before."""
    torch = _torch(threads)
    if torch is None:
        return None
    a = torch.from_numpy(arrays["A"])
    weight = torch.from_numpy(np.ascontiguousarray(arrays["B"].T))
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, a.shape[0])
    return lambda: torch.ops.mkldnn._linear_pointwise(a, packed, None, "none", [], "")


def torch_mkldnn_linear(arrays: Mapping[str, Any], threads: int) -> Call | None:
    """The same on tensors that are all in oneDNN's own type, the result too: nothing is converted in the call."""
    torch = _torch(threads)
    if torch is None:
        return None
    a = torch.from_numpy(arrays["A"]).to_mkldnn()
    weight = torch.from_numpy(np.ascontiguousarray(arrays["B"].T)).to_mkldnn()
    return lambda: torch._C._nn.mkldnn_linear(a, weight, None)


def torch_int_mm(arrays: Mapping[str, Any], threads: int) -> Call | None:
    """PyTorch's int8 product. It takes s8 on both sides, so A's bytes are read as s8: the same work, other numbers."""
    torch = _torch(threads)
    if torch is None:
        return None
    a = torch.from_numpy(arrays["A"].view(np.int8))
    b = torch.from_numpy(arrays["B"])
    return lambda: torch._int_mm(a, b)


def torch_conv2d(arrays: Mapping[str, Any], threads: int) -> Call | None:
    """oneDNN's convolution, channels last, with a weight that was packed before."""
    torch = _torch(threads)
    if torch is None:
        return None
    x = torch.from_numpy(arrays["X"]).permute(0, 3, 1, 2)
    w = torch.from_numpy(np.ascontiguousarray(arrays["W"].transpose(3, 2, 0, 1)))
    packed = torch.ops.mkldnn._reorder_convolution_weight(w, [1, 1], [1, 1], [1, 1], 1, list(x.shape))
    pointwise = torch.ops.mkldnn._convolution_pointwise
    return lambda: pointwise(x, packed, None, [1, 1], [1, 1], [1, 1], 1, "none", [], "")
