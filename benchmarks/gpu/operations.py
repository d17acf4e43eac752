"""Operations that PyTorch runs beside ours: products and convolutions in 16 bits of the shapes that nobody tuned for;
attention by cuDNN and FlashAttention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Draw = Callable[..., Any]


class Operation(Protocol):
    """`inputs` draws one set of data, `draw` making a tensor of a shape on the GPU; a call computes on it."""

    def inputs(self, draw: Draw) -> tuple[Any, ...]: ...

    def __call__(self, *given: Any) -> Any: ...


@dataclass(frozen=True)
class Product:
    """`A B` of `m` by `k` and `k` by `n`, of each of a `batch` if there is one; `turned`: B lies as n by k."""

    sizes: Mapping[str, Any]
    turned: bool = False

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        s = self.sizes
        batch = (s["batch"],) if "batch" in s else ()
        b = draw(*batch, s["n"], s["k"]).transpose(-1, -2) if self.turned else draw(*batch, s["k"], s["n"])
        return draw(*batch, s["m"], s["k"]), b

    def __call__(self, *given: Any) -> Any:
        import torch

        return torch.matmul(*given)


@dataclass(frozen=True)
class Convolution:
    """A 3x3 convolution of images with channels last, in `groups` of channels (each by itself where none are said)."""

    sizes: Mapping[str, Any]

    @property
    def groups(self) -> int:
        return int(self.sizes.get("groups", self.sizes.get("c", 1)))

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        import torch

        s = self.sizes
        channels, out = s.get("ci", s.get("c")), s.get("co", s.get("c"))
        torch.backends.cudnn.benchmark = True
        x = draw(s["n"], s["h"], s["w"], channels).permute(0, 3, 1, 2)
        return x, draw(out, 3, 3, channels // self.groups).permute(0, 3, 1, 2)

    def __call__(self, *given: Any) -> Any:
        from torch.nn.functional import conv2d

        return conv2d(*given, padding=1, groups=self.groups)


@dataclass(frozen=True)
class Attention:
    """Softmax of scores by values: `h` heads of `n` queries and as many keys, of `d` numbers each; `mask` is `full` or
    `causal`. `backend` is who computes it, as PyTorch names it."""

    sizes: Mapping[str, Any]
    backend: str

    def inputs(self, draw: Draw) -> tuple[Any, ...]:
        s = self.sizes
        return tuple(draw(1, s["h"], s["n"], s["d"]) for _ in "QKV")

    def __call__(self, *given: Any) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        with sdpa_kernel(getattr(SDPBackend, self.backend)):
            return scaled_dot_product_attention(*given, is_causal=self.sizes["mask"] == "causal")


def operations() -> dict[str, Callable[[Mapping[str, Any]], Operation]]:
    """By what a case asks for: makes the operation of so many sizes."""
    from benchmarks.gpu.chain_operations import written

    return written() | {
        "nn": Product,
        "nt": lambda sizes: Product(sizes, turned=True),
        "batch": Product,
        "depthwise": Convolution,
        "grouped": Convolution,
    }
