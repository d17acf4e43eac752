"""Libraries on the GPU, through PyTorch: cuBLAS and cuBLASLt, cuDNN, FlashAttention; matmuls in Triton and TileLang,
autotuned.

Each is timed as ours are: calls recorded as a graph, on copies of the data of twice the last cache's size in turn.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.gpu.chain_operations import NAMED
from benchmarks.gpu.operations import Attention, Operation, operations
from benchmarks.gpu.rows import calls

COLD_CACHES, MOST_SETS, MOST_RECORDED = 2, 64, 64
FAR = 0.01
"""Sums of products of 8 bits that were rounded to 13, and then to bf16, are within half of it."""


@dataclass(frozen=True)
class Asked:
    """What a library is to compute: `sizes` of a `gemm` (A of m by k, B of n by k), a `conv` (NHWC), `attention` or
    rows, `dtype` of the inputs, `bytes` of one set of data, `l2_bytes` of the GPU."""

    peer: str
    dtype: str
    sizes: dict[str, Any]
    bytes: int
    l2_bytes: int

    @property
    def sets(self) -> int:
        return max(2, min(-(-COLD_CACHES * self.l2_bytes // max(1, self.bytes)) + 1, MOST_SETS))


@dataclass
class Peer:
    """Calling it runs it that many times and says how many seconds the device took."""

    name: str
    calls: list[Callable[[], Any]]
    _graphs: dict[int, Any] = field(default_factory=dict)
    _keep: list[Any] = field(default_factory=list)

    def __call__(self, times: int) -> float:
        import torch

        recorded = min(times, MOST_RECORDED)
        graph = self._graph(recorded)
        replays = -(-times // recorded)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3 * times / (replays * recorded)

    def _graph(self, times: int) -> Any:
        import torch

        if times not in self._graphs:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for call in self.calls[:2]:
                    self._keep.append(call())
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with warnings.catch_warnings(), torch.cuda.graph(graph):
                warnings.filterwarnings("error", "The CUDA Graph is empty")
                for i in range(times):
                    call = self.calls[i % len(self.calls)]
                    call()
            self._graphs[times] = graph
        return self._graphs[times]


def versions() -> dict[str, str]:
    """Of everything that takes part."""
    import torch

    names = ("torch", "triton", "tilelang", "nvidia-cublas", "nvidia-cudnn-cu13", "cuda-bindings", "numpy")
    found = {n: _version(n) for n in names}
    return found | {"cuda": str(torch.version.cuda), "gpu": torch.cuda.get_device_name(0)}


def peers(asked: Asked) -> Iterator[Peer | tuple[str, str]]:
    """One at a time; a library that cannot compute it is its name and why."""
    makers = {
        "gemm": (_matmul, _triton, _tilelang),
        "conv": (_convolution,),
        "attention": (_cudnn_attention, _flash_attention),
    }.get(asked.peer, (_rows,))
    if asked.peer in operations():
        makers = (_eager, _compiled)
    if asked.peer in NAMED:
        for name, operation in NAMED[asked.peer](asked.sizes):
            yield _tried(name, asked, operation)
        return
    for maker in makers:
        try:
            yield from maker(asked)
        except Exception as error:  # a library's own refusal of a type or a shape
            yield maker.__name__.strip("_"), _why(error)


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"


def _tried(name: str, asked: Asked, operation: Operation) -> Peer | tuple[str, str]:
    """The operation on so many sets of data, run once; its name and why where PyTorch refuses it."""
    import torch

    try:
        peer = _peer(name, asked, operation)
        peer.calls[0]()
        torch.cuda.synchronize()
    except Exception as error:  # a library's own refusal of a type or a shape
        return name, _why(error)
    return peer


def _peer(name: str, asked: Asked, operation: Operation, call: Callable[..., Any] | None = None) -> Peer:
    """The operation, or the `call` that stands for it, on as many sets of data as are asked for."""
    run = call or operation
    sets = [operation.inputs(lambda *shape: _draw(asked.dtype, *shape)) for _ in range(asked.sets)]
    return Peer(name, [lambda given=given: run(*given) for given in sets])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _draw(dtype: str, *shape: int) -> Any:
    import torch

    if dtype == "s8":
        return torch.randint(-128, 128, shape, dtype=torch.int8, device="cuda")
    values = torch.rand(shape, device="cuda", dtype=torch.float32) * 2 - 1
    kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "e4m3": torch.float8_e4m3fn}
    return values.to(kinds[dtype])


def _pairs(asked: Asked) -> list[tuple[Any, Any]]:
    s = asked.sizes
    return [(_draw(asked.dtype, s["m"], s["k"]), _draw(asked.dtype, s["n"], s["k"])) for _ in range(asked.sets)]


def _matmul(asked: Asked) -> Iterator[Peer]:
    import torch

    pairs, s = _pairs(asked), asked.sizes
    match asked.dtype:
        case "s8":
            yield Peer("cublaslt", [lambda a=a, b=b: torch._int_mm(a, b.t()) for a, b in pairs])
        case "e4m3":
            one = torch.ones((), device="cuda")

            def scaled(a: Any, b: Any, fast: bool) -> Any:
                return torch._scaled_mm(
                    a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast
                )

            for fast, name in ((True, "cublaslt"), (False, "cublaslt precise")):
                yield Peer(name, [lambda a=a, b=b, fast=fast: scaled(a, b, fast) for a, b in pairs])
        case _:
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
            outs = [torch.empty(s["m"], s["n"], device="cuda", dtype=a.dtype) for a, _ in pairs]
            whole = zip(pairs, outs, strict=True)
            yield Peer("cublas", [lambda a=a, b=b, o=o: torch.matmul(a, b.t(), out=o) for (a, b), o in whole])


def _triton(asked: Asked) -> Iterator[Peer]:
    from benchmarks.gpu.triton_matmul import launch

    sets = _with_outputs(asked)
    _check(launch, *sets[0])
    yield Peer("triton", [lambda given=given: launch(*given) for given in sets])


def _tilelang(asked: Asked) -> Iterator[Peer]:
    from benchmarks.gpu.tilelang_matmul import fastest

    sets = _with_outputs(asked)
    kernel = fastest(*sets[0])
    _check(kernel, *sets[0])
    yield Peer("tilelang", [lambda given=given: kernel(*given) for given in sets])


def _check(kernel: Callable[[Any, Any, Any], Any], a: Any, b: Any, c: Any) -> None:
    """ValueError where `c` is not `a bᵀ`: a kernel of users' kind is nobody's library, and may be wrong."""
    kernel(a, b, c.fill_(1))
    want = a.float() @ b.float().t()
    error = float((c.float() - want).norm() / want.norm())
    if not error < FAR:
        raise ValueError(f"its product is off by {error:.2%}")


def _with_outputs(asked: Asked) -> list[tuple[Any, Any, Any]]:
    import torch

    pairs, s = _pairs(asked), asked.sizes
    kind = {"s8": torch.int32, "e4m3": torch.bfloat16}.get(asked.dtype, pairs[0][0].dtype)
    return [(a, b, torch.empty(s["m"], s["n"], device="cuda", dtype=kind)) for a, b in pairs]


def _rows(asked: Asked) -> Iterator[Peer]:
    def draw(*shape: int) -> Any:
        return _draw(asked.dtype, *shape)

    yield Peer("torch", calls(asked.peer, asked.sizes, draw, asked.sets))


def _eager(asked: Asked) -> Iterator[Peer]:
    yield _peer("torch", asked, operations()[asked.peer](asked.sizes))


def _compiled(asked: Asked) -> Iterator[Peer]:
    import torch

    operation = operations()[asked.peer](asked.sizes)
    yield _peer("torch compiled", asked, operation, torch.compile(operation.__call__))


def _attention(asked: Asked, name: str, backend: str) -> Iterator[Peer]:
    yield _peer(name, asked, Attention(asked.sizes, backend))


def _cudnn_attention(asked: Asked) -> Iterator[Peer]:
    yield from _attention(asked, "cudnn", "CUDNN_ATTENTION")


def _flash_attention(asked: Asked) -> Iterator[Peer]:
    """FlashAttention 2, which PyTorch contains."""
    yield from _attention(asked, "flash attention", "FLASH_ATTENTION")


def _convolution(asked: Asked) -> Iterator[Peer]:
    import torch
    from torch.nn.functional import conv2d

    s = {"stride": 1, "pad": 1, "kh": 3, "kw": 3} | asked.sizes
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = False
    sets = []
    for _ in range(asked.sets):
        x = _draw(asked.dtype, s["n"], s["h"], s["w"], s["ci"]).permute(0, 3, 1, 2)
        w = _draw(asked.dtype, s["co"], s["kh"], s["kw"], s["ci"]).permute(0, 3, 1, 2)
        sets.append((x, w))
    yield Peer("cudnn", [lambda x=x, w=w: conv2d(x, w, stride=s["stride"], padding=s["pad"]) for x, w in sets])
