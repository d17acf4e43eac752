"""PyTorch's ways to compute the chains: SDPA, eager modules, Inductor with frozen weights, linear layers packed for
oneDNN (on some CPUs three times as fast as the library that eager f32 products go to), products on narrow weights.

Weights are converted and packed before the timed call. A way that computes with other numbers (bf16, activations of 8
bits) says so in its name and has a tolerance to match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.peers import torch_peer
from benchmarks.peers.task import Contender, Task, UnavailableError, tolerance

EIGHT_BITS = 3e-2
"""Of activations in 8 bits, relative to the greatest result: 2e-2 was seen where torch drops one bit more."""
ZERO = {4: 8, 8: 0}
"""The weight that PyTorch's formats take as zero."""


def contenders(task: Task) -> tuple[list[Contender], dict[str, str]]:
    """Every way that works here, and why others do not, by name."""
    try:
        import torch
    except ImportError:
        return [], {"PyTorch": "torch is not installed: pip install 'autosched[bench]'"}
    torch.set_num_threads(task.threads)
    torch.set_grad_enabled(False)
    found: list[Contender] = []
    missing: dict[str, str] = {}
    for name, way in _ways(torch, task).items():
        try:
            made = way()
            made.run()
            found.append(made)
        except UnavailableError as reason:
            missing[name] = str(reason)
        except Exception as error:  # a library's own failure is a fact about the library
            missing[name] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return found, missing


def _ways(torch: Any, task: Task) -> dict[str, Callable[[], Contender]]:
    match task.program.name.split("_")[0]:
        case "attention":
            return {"SDPA": lambda: _attention(torch, task)}
        case "mlp" | "swiglu":
            return {**_modules(torch, task, _feed_forward), "packed": lambda: _packed(torch, task)}
        case "depthwise" | "conv2d":
            return _modules(torch, task, _separable)
        case "inverted":
            return _modules(torch, task, _inverted)
        case "matmul":
            return dict(_narrow(torch, task))
    raise ValueError(f"no peer is known for {task.program.name}")


def _contender(name: str, call: Callable[[], Any], allowed: float) -> Contender:
    kept = torch_peer.Kept(call)
    return Contender(f"torch {name}", torch_peer.FAMILY, kept, kept.result, tolerance=allowed)


def _attention(torch: Any, task: Task) -> Contender:
    q, k, v = (torch_peer.tensor(torch, task.arrays[name])[None] for name in "QKV")
    causal = task.program.name.endswith("causal")
    attend = torch.nn.functional.scaled_dot_product_attention
    return _contender("SDPA", lambda: attend(q, k, v, is_causal=causal)[0], tolerance(task.dtype("Q")))


def _modules(
    torch: Any, task: Task, make: Callable[[Any, Task], tuple[Any, Any]]
) -> dict[str, Callable[[], Contender]]:
    """The same module, eager and compiled."""
    module, x = make(torch, task)
    allowed = tolerance(task.dtype("X"))

    def compiled() -> Contender:
        import torch._inductor.config as inductor

        with inductor.patch(freezing=True, compile_threads=1):
            run = torch.compile(module)
            run(x)
        return _contender("Inductor", lambda: run(x), allowed)

    return {"eager": lambda: _contender("eager", lambda: module(x), allowed), "Inductor": compiled}


def _feed_forward(torch: Any, task: Task) -> tuple[Any, Any]:
    functions = torch.nn.functional
    x = torch_peer.tensor(torch, task.arrays["X"])
    w = {n: torch_peer.tensor(torch, task.arrays[n]).t().contiguous() for n in "WUD" if n in task.arrays}
    b = {n: torch_peer.tensor(torch, task.arrays[n]).to(x.dtype) for n in "BE" if n in task.arrays}

    class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            for name, value in (w | b).items():
                self.register_buffer(name, value)

        def forward(self, x: Any) -> Any:
            up = functions.linear(x, self.W, self.B if b else None)
            inner = functions.gelu(up) if b else functions.silu(up) * functions.linear(x, self.U)
            return functions.linear(inner, self.D, self.E if b else None)

    return Layer().eval(), x


def _packed(torch: Any, task: Task) -> Contender:
    """What Inductor calls where it packs a linear layer for oneDNN, called by hand."""
    ops, functions = torch.ops.mkldnn, torch.nn.functional
    x = torch_peer.tensor(torch, task.arrays["X"])
    if x.dtype is torch.bfloat16 and not ops._is_mkldnn_bf16_supported():
        raise UnavailableError("oneDNN has no products of bf16 on this CPU")
    w = {
        n: ops._reorder_linear_weight(torch_peer.tensor(torch, task.arrays[n]).t().contiguous(), x.shape[0])
        for n in "WUD"
        if n in task.arrays
    }
    b = {n: torch_peer.tensor(torch, task.arrays[n]).to(x.dtype) for n in "BE" if n in task.arrays}
    linear = ops._linear_pointwise

    def layer() -> Any:
        if b:
            return linear(linear(x, w["W"], b["B"], "gelu", [], "none"), w["D"], b["E"], "none", [], "")
        gate = functions.silu(linear(x, w["W"], None, "none", [], ""), inplace=True)
        gate *= linear(x, w["U"], None, "none", [], "")
        return linear(gate, w["D"], None, "none", [], "")

    return _contender("packed", layer, tolerance(task.dtype("X")))


def _separable(torch: Any, task: Task) -> tuple[Any, Any]:
    functions = torch.nn.functional
    x = torch_peer.tensor(torch, task.arrays["X"]).permute(0, 3, 1, 2)
    first, second = (torch_peer.tensor(torch, task.arrays[n]) for n in "DP")
    by_channel = first.dim() == 3
    first = first.permute(2, 0, 1)[:, None] if by_channel else first.permute(3, 2, 0, 1)
    groups = first.shape[0] if by_channel else 1

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            last = torch.channels_last
            self.register_buffer("first", first.contiguous(memory_format=last))
            self.register_buffer("second", second.t()[:, :, None, None].contiguous(memory_format=last))

        def forward(self, x: Any) -> Any:
            inner = functions.relu6(functions.conv2d(x, self.first, padding=1, groups=groups))
            return functions.conv2d(inner, self.second).permute(0, 2, 3, 1)

    return Block().eval(), x


def _inverted(torch: Any, task: Task) -> tuple[Any, Any]:
    functions, last = torch.nn.functional, torch.channels_last
    x = torch_peer.tensor(torch, task.arrays["X"]).permute(0, 3, 1, 2)
    expand, depthwise, project = (torch_peer.tensor(torch, task.arrays[n]) for n in "EDP")
    stride, groups = task.program.sizes["st"], depthwise.shape[2]

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("expand", expand.t()[:, :, None, None].contiguous(memory_format=last))
            self.register_buffer("depthwise", depthwise.permute(2, 0, 1)[:, None].contiguous(memory_format=last))
            self.register_buffer("project", project.t()[:, :, None, None].contiguous(memory_format=last))

        def forward(self, x: Any) -> Any:
            inner = functions.relu6(functions.conv2d(x, self.expand))
            inner = functions.conv2d(inner, self.depthwise, padding=1, stride=stride, groups=groups)
            return functions.conv2d(functions.relu6(inner), self.project).permute(0, 2, 3, 1)

    return Block().eval(), x


def _narrow(torch: Any, task: Task) -> Iterator[tuple[str, Callable[[], Contender]]]:
    bits = task.program.tensors["W"].dtype.bits
    group = task.program.sizes["g"]
    x = torch_peer.tensor(torch, task.arrays["X"])
    weights = task.arrays["W"].astype(np.int32).T
    scales = np.ascontiguousarray(task.arrays["S"])
    zeros = task.arrays["Z"].astype(np.float32)

    def four_bits(name: str, dtype: Any) -> Contender:
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.from_numpy(weights.copy()), 2)
        both = np.stack([scales, (ZERO[bits] - zeros) * scales], -1)
        both, xs = torch.from_numpy(both).to(dtype), x.to(dtype)
        return _contender(
            name, lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(xs, packed, group, both), _allowed(dtype, torch)
        )

    def symmetric() -> Any:
        if scales.shape[0] > 1 or zeros.any():
            raise UnavailableError("its 8-bit weights have one scale a column and no zero point")
        return torch.from_numpy(np.ascontiguousarray(weights.astype(np.int8)))

    def eight_bits(name: str, dtype: Any) -> Contender:
        w, s, xs = symmetric(), torch.from_numpy(scales[0]).to(dtype), x.to(dtype)
        return _contender(name, lambda: torch._weight_int8pack_mm(xs, w, s), _allowed(dtype, torch))

    def dynamic() -> Contender:
        w, s = symmetric(), torch.from_numpy(scales[0]).double()
        wide = torch._make_per_channel_quantized_tensor(w, s, torch.zeros(len(s), dtype=torch.long), 0)
        packed = torch.ops.quantized.linear_prepack(wide, None)
        name = "dynamic quantisation, 8-bit activations"
        return _contender(name, lambda: torch.ops.quantized.linear_dynamic(x, packed, False), EIGHT_BITS)

    one = four_bits if bits == 4 else eight_bits
    yield f"int{bits}pack_mm", lambda: one(f"int{bits}pack_mm", torch.float32)
    yield f"int{bits}pack_mm in bf16", lambda: one(f"int{bits}pack_mm in bf16", torch.bfloat16)
    if bits == 8:
        yield "dynamic quantisation", dynamic


def _allowed(dtype: Any, torch: Any) -> float:
    return tolerance("bf16" if dtype is torch.bfloat16 else "f32")
