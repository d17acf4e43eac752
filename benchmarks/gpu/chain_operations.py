"""The operations that PyTorch runs beside the chains of `benchmarks.gpu.chains`, written as its users write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.gpu.operations import Draw, Operation

Sizes = Mapping[str, Any]
Call = Callable[..., Any]


@dataclass(frozen=True)
class Written:
    """`shapes` of the inputs, drawn in the case's type, and what is computed of them."""

    shapes: tuple[tuple[int, ...], ...]
    compute: Call

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        return tuple(draw(*shape) for shape in self.shapes)

    def __call__(self, *given: Any) -> Any:
        return self.compute(*given)


def feed_forward(kind: str, s: Sizes) -> Operation:
    """Products of X by weights that lie as the program's do; `swiglu` and `geglu` have two before the last."""
    from torch.nn.functional import gelu, silu

    activation = silu if kind == "swiglu" else gelu
    up, down = (s["k"], s["f"]), (s["f"], s["n"])

    def gated(x: Any, w: Any, u: Any, d: Any) -> Any:
        return (activation(x @ w) * (x @ u)) @ d

    def plain(x: Any, w: Any, b: Any, d: Any, e: Any) -> Any:
        return gelu(x @ w + b) @ d + e

    x = (s["m"], s["k"])
    if kind == "mlp":
        return Written((x, up, (s["f"],), down, (s["n"],)), plain)
    return Written((x, up, up, down), gated)


def norm_product(kind: str, s: Sizes) -> Operation:
    """A norm of the rows of X, and its product with weights."""
    from torch.nn.functional import layer_norm, rms_norm

    x, row, w = (s["m"], s["k"]), (s["k"],), (s["k"], s["n"])
    if kind == "rms_norm_product":
        return Written((x, row, w), lambda x, g, w: rms_norm(x, row, g, 1e-5) @ w)
    return Written((x, row, row, w), lambda x, g, b, w: layer_norm(x, row, g, b, 1e-5) @ w)


@dataclass(frozen=True)
class CrossEntropy:
    """The loss of `m` rows whose logits are a product, with a target each."""

    sizes: Sizes

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        import torch

        s = self.sizes
        return draw(s["m"], s["k"]), draw(s["k"], s["v"]), torch.randint(0, s["v"], (s["m"],), device="cuda")

    def __call__(self, *given: Any) -> Any:
        from torch.nn.functional import cross_entropy

        x, w, targets = given
        return cross_entropy(x @ w, targets, reduction="none")


@dataclass(frozen=True)
class Experts:
    """Rows in contiguous runs, each by the weights of its expert (`torch._grouped_mm`)."""

    sizes: Sizes

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        import torch

        s = self.sizes
        ends = torch.arange(1, s["experts"] + 1, device="cuda", dtype=torch.int32) * (s["m"] // s["experts"])
        return draw(s["m"], s["k"]), draw(s["experts"], s["k"], s["n"]), ends

    def __call__(self, *given: Any) -> Any:
        import torch

        x, w, ends = given
        return torch._grouped_mm(x, w, offs=ends)


def written() -> dict[str, Callable[[Sizes], Operation]]:
    """By what a case asks for: makes the operation of so many sizes, which runs eagerly and compiled."""
    made: dict[str, Callable[[Sizes], Operation]] = {"cross_entropy": CrossEntropy, "experts": Experts}
    made |= {kind: partial(feed_forward, kind) for kind in ("swiglu", "geglu", "mlp")}
    return made | {kind: partial(norm_product, kind) for kind in ("rms_norm_product", "layer_norm_product")}


def narrow(s: Sizes) -> Iterator[tuple[str, Operation]]:
    """For weights of few bits: cuBLAS on weights of bf16, both ways round, and PyTorch's own on 4 bits."""
    x = (s["m"], s["k"])
    yield "cublas", Written((x, (s["k"], s["n"])), lambda x, w: x @ w)
    yield "cublas transposed", Written((x, (s["n"], s["k"])), lambda x, w: x @ w.t())
    yield "torch int4", PackedInt4(s)


@dataclass(frozen=True)
class PackedInt4:
    """PyTorch's product on weights of 4 bits with a scale and a zero point for each group of a column."""

    sizes: Sizes

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        import torch

        s = self.sizes
        bytes_of_two = torch.randint(0, 256, (s["n"], s["k"] // 2), device="cuda", dtype=torch.uint8)
        packed = torch._convert_weight_to_int4pack(bytes_of_two, 8)
        return draw(s["m"], s["k"]), packed, draw(s["k"] // s["g"], s["n"], 2)

    def __call__(self, *given: Any) -> Any:
        import torch

        x, packed, scales = given
        return torch._weight_int4pack_mm(x, packed, self.sizes["g"], scales)


@dataclass(frozen=True)
class Decode:
    """One token in each sequence: `h` heads of all sequences, `group` of which share keys and values; `backend` as
    PyTorch names it."""

    sizes: Sizes
    backend: str

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        s = self.sizes
        cache = (s["h"] // s["group"], 1, s["l"], s["d"])
        return draw(cache[0], s["group"], 1, s["d"]), draw(*cache), draw(*cache)

    def __call__(self, *given: Any) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        with sdpa_kernel(getattr(SDPBackend, self.backend)):
            return scaled_dot_product_attention(*given, enable_gqa=True)


@dataclass(frozen=True)
class Copy:
    """A copy of as many bytes as the caches have: half of them read, half written."""

    sizes: Sizes

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        s = self.sizes
        cache = (s["h"] // s["group"], s["l"], s["d"])
        return draw(*cache), draw(*cache)

    def __call__(self, *given: Any) -> Any:
        return given[1].copy_(given[0])


@dataclass(frozen=True)
class ScaledBlocks:
    """`(A R) (B S)` of 8-bit floats by cuBLASLt: R for 128 elements of a row of A, S for 128 by 128 of B."""

    sizes: Sizes

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        import torch

        m, n, k = (self.sizes[name] for name in "mnk")
        scales_of_a = torch.ones((k // 128, m), device="cuda").t()
        return draw(m, k), draw(n, k).t(), scales_of_a, torch.ones((k // 128, n // 128), device="cuda")

    def __call__(self, *given: Any) -> Any:
        import torch

        a, b, r, s = given
        return torch._scaled_mm(a, b, scale_a=r, scale_b=s, out_dtype=torch.bfloat16)


@dataclass(frozen=True)
class ScaledRows(ScaledBlocks):
    """The same product with one scale for a row of A and a column of B, which cuBLASLt and CUTLASS know."""

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        import torch

        m, n, k = (self.sizes[name] for name in "mnk")
        return draw(m, k), draw(n, k).t(), torch.ones((m, 1), device="cuda"), torch.ones((1, n), device="cuda")


@dataclass(frozen=True)
class Sparse:
    """A product of 2:4 sparse data by cuSPARSELt."""

    sizes: Sizes

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        import torch
        from torch.sparse import to_sparse_semi_structured

        kept = torch.tensor([1, 0, 0, 1], device="cuda").tile(self.sizes["m"], self.sizes["k"] // 4)
        a = draw(self.sizes["m"], self.sizes["k"])
        return to_sparse_semi_structured(a * kept.to(a.dtype)), draw(self.sizes["n"], self.sizes["k"])

    def __call__(self, *given: Any) -> Any:
        import torch

        a, b = given
        return torch.mm(a, b.t())


@dataclass(frozen=True)
class Dense:
    """The product that a sparse one stands for, by cuBLAS, with all elements of A."""

    sizes: Sizes

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        return draw(self.sizes["m"], self.sizes["k"]), draw(self.sizes["n"], self.sizes["k"])

    def __call__(self, *given: Any) -> Any:
        import torch

        a, b = given
        return torch._int_mm(a, b.t()) if a.dtype == torch.int8 else torch.mm(a, b.t())


def sparse(s: Sizes) -> Iterator[tuple[str, Operation]]:
    yield "cusparselt", Sparse(s)
    yield "cublas", Dense(s)


def decode(s: Sizes) -> Iterator[tuple[str, Operation]]:
    """Attention's libraries, and what the memory's speed allows."""
    for name, backend in (("cudnn", "CUDNN_ATTENTION"), ("flash attention", "FLASH_ATTENTION")):
        yield name, Decode(s, backend)
    yield "copy", Copy(s)


def blocks(s: Sizes) -> Iterator[tuple[str, Operation]]:
    """cuBLASLt with scales of blocks, where it has them, and with those of rows."""
    yield "cublaslt", ScaledBlocks(s)
    yield "cublaslt rows", ScaledRows(s)


NAMED: dict[str, Callable[[Sizes], Iterator[tuple[str, Operation]]]] = {
    "narrow": narrow,
    "decode": decode,
    "blocks": blocks,
    "sparse": sparse,
}
"""What several libraries compute, by what a case asks for."""
