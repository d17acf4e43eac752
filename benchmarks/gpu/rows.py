"""Programs that memory limits: what is measured of them, and PyTorch's kernels for the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.gpu.cases import Case

SHAPES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("softmax", "softmax", {"m": 4096, "n": 4096}),
    ("softmax", "softmax", {"m": 16384, "n": 1024}),
    ("layer_norm", "layer_norm", {"m": 4096, "n": 4096}),
    ("sum", "reduce", {"op": "sum", "over": "rows", "m": 1, "n": 1 << 24}),
    ("sum", "reduce", {"op": "sum", "over": "rows", "m": 4096, "n": 4096}),
    ("sum", "reduce", {"op": "sum", "over": "columns", "m": 4096, "n": 4096}),
    ("add", "elementwise", {"op": "add", "m": 8192, "n": 8192}),
    ("gelu", "elementwise", {"op": "gelu", "m": 8192, "n": 8192}),
    ("gemv", "gemv", {"m": 14336, "k": 4096}),
    ("one_row", "matmul", {"m": 1, "n": 14336, "k": 4096}),
)
"""What PyTorch is asked for, the workload, its sizes."""


def row_cases() -> Iterator[Case]:
    """Each of them in f16 and f32; sums are f32."""
    for dtype in ("f16", "f32"):
        for peer, workload, sizes in SHAPES:
            types = {"a": dtype, "b": dtype, "acc": "f32"} if peer in ("gemv", "one_row") else {"t": dtype}
            size = "x".join(str(sizes[n]) for n in ("m", "n", "k") if n in sizes)
            label = "_".join([peer, *([sizes["over"]] if "over" in sizes else []), size])
            yield Case("rows", label, dtype, workload, {**sizes, **types}, peer)


def calls(peer: str, sizes: Mapping[str, Any], draw: Callable[..., Any], sets: int) -> list[Callable[[], Any]]:
    """PyTorch's calls for one of `SHAPES`, on so many sets of data; `draw` makes a tensor of a shape."""
    import torch
    from torch.nn.functional import gelu, layer_norm

    m, n, k = (sizes.get(name, 1) for name in ("m", "n", "k"))
    shapes = {"gemv": ((m, k), (k,)), "one_row": ((1, k), (k, n)), "add": ((m, n), (m, n))}
    data = [[draw(*shape) for shape in shapes.get(peer, ((m, n),))] for _ in range(sets)]
    axis = 0 if sizes.get("over") == "columns" else 1

    def call(x: Any, *others: Any) -> Any:
        match peer:
            case "softmax":
                return torch.softmax(x, 1)
            case "layer_norm":
                return layer_norm(x, (n,), x[0], x[0])
            case "sum":
                return x.sum(axis, dtype=torch.float32)
            case "gelu":
                return gelu(x)
            case "add":
                return torch.add(x, others[0])
            case _:
                return torch.matmul(x, others[0])

    return [lambda given=given: call(*given) for given in data]
