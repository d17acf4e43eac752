"""What is measured on a GPU: shapes by types, and what the targets ask of each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A program of the built-in workloads; `peer` is what libraries are asked to compute (`gemm`, `conv`, `attention`)
    and `dtype` the type of its inputs. `only` are globs of intrinsics; `share`: asked for of the instruction's own
    ceiling; `card`: what it is tuned for, as its driver calls it."""

    group: str
    label: str
    dtype: str
    workload: str
    sizes: dict[str, Any] = field(hash=False)
    peer: str = "gemm"
    only: tuple[str, ...] = ()
    share: float | None = None
    numerics: str = "reassociated"
    card: str = "NVIDIA H200"

    @property
    def name(self) -> str:
        return f"{self.group}/{self.dtype}/{self.label}"


SQUARES = (1024, 2048, 4096, 8192)
LLM = ((16, 4096, 4096), (64, 14336, 4096), (128, 7168, 2112), (4096, 14336, 4096))
"""Rows, columns and depth."""
ROWS, WEIGHTS = (1, 16, 64, 128, 4096), ((4096, 4096), (14336, 4096), (7168, 2112), (32768, 512))
"""All shapes of language models are rows by weights of so many columns and so deep."""
TYPES: dict[str, tuple[str, dict[str, str]]] = {
    "bf16": ("matmul_nt", {"a": "bf16", "b": "bf16", "acc": "f32", "out": "bf16"}),
    "f16": ("matmul_nt", {"a": "f16", "b": "f16", "acc": "f32", "out": "f16"}),
    "e4m3": ("matmul_nt", {"a": "e4m3", "b": "e4m3", "acc": "f32", "out": "bf16"}),
    "s8": ("matmul_nt", {"a": "s8", "b": "s8", "acc": "s32"}),
}
FIRST_TYPES = ("bf16", "e4m3", "s8")
CONVOLUTIONS = (
    ("rn50_56_1x1_64_256", {"h": 56, "w": 56, "ci": 64, "co": 256, "kh": 1, "kw": 1, "pad": 0}),
    ("rn50_56_3x3_64", {"h": 56, "w": 56, "ci": 64, "co": 64}),
    ("rn50_28_3x3_128", {"h": 28, "w": 28, "ci": 128, "co": 128}),
    ("rn50_14_3x3_256", {"h": 14, "w": 14, "ci": 256, "co": 256}),
    ("rn50_7_3x3_512", {"h": 7, "w": 7, "ci": 512, "co": 512}),
    ("rn50_28_3x3_s2_128", {"h": 56, "w": 56, "ci": 128, "co": 128, "stride": 2}),
)

_F16, _BF16 = ({"t": t, "out": t} for t in ("f16", "bf16"))
UNTUNED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("nn", "f16", "matmul", {"m": 3000, "n": 3000, "k": 3000, **_F16}),
    ("nt", "bf16", "matmul_nt", {"m": 1000, "n": 1000, "k": 1000, **_BF16}),
    ("nt", "bf16", "matmul_nt", {"m": 5120, "n": 13824, "k": 5120, **_BF16}),
    ("nt", "bf16", "matmul_nt", {"m": 4095, "n": 4095, "k": 4095, **_BF16}),
    ("batch", "f16", "batch_matmul", {"batch": 96, "m": 512, "n": 512, "k": 64, **_F16}),
    ("batch", "f16", "batch_matmul", {"batch": 16, "m": 1024, "n": 1024, "k": 128, **_F16}),
    ("depthwise", "f16", "depthwise_conv2d", {"n": 32, "h": 112, "w": 112, "c": 64, **_F16}),
    ("grouped", "f16", "conv2d", {"n": 32, "h": 28, "w": 28, "ci": 256, "co": 256, "groups": 4, **_F16}),
    ("grouped", "f16", "conv2d", {"n": 32, "h": 28, "w": 28, "ci": 256, "co": 256, "groups": 32, **_F16}),
)
"""Shapes that nobody tuned for: what PyTorch is asked for (`operations`), the inputs' type, the workload, its sizes."""

ATTENTION = ((32, 2048), (16, 4096), (128, 512), (4, 16384))
"""Heads, and tokens of queries and keys."""


def _gemm(group: str, dtype: str, m: int, n: int, k: int, **more: Any) -> Case:
    workload, types = TYPES[dtype]
    label = f"{m}" if m == n == k else f"{m}x{n}x{k}"
    # Tensor cores sum products of 8-bit floats with 13 fraction bits: so do the libraries where they are fast.
    numerics = "real" if dtype == "e4m3" else "reassociated"
    return Case(group, label, dtype, workload, {"m": m, "n": n, "k": k, **types}, numerics=numerics, **more)


def _conv(dtype: str, label: str, sizes: dict[str, int]) -> Case:
    types = {"t": dtype} | {name: t for name, t in TYPES[dtype][1].items() if name in ("acc", "out")}
    numerics = "real" if dtype == "e4m3" else "reassociated"
    return Case("conv", label, dtype, "conv2d", {"n": 32, **types, **sizes}, "conv", numerics=numerics)


def _attention(dtype: str, heads: int, tokens: int, d: int, mask: str) -> Case:
    sizes = {"h": heads, "n": tokens, "l": tokens, "d": d, "mask": mask, "t": dtype}
    label = f"{mask}_{heads}x{tokens}x{d}"
    return Case("attention", label, dtype, "attention_rounded", sizes, "attention", numerics="real")


def all_cases() -> Iterator[Case]:
    """Every case: the first eight shapes by three types, tiers, convolutions, attention, the other shapes of language
    models."""
    for dtype in (*FIRST_TYPES, *(t for t in TYPES if t not in FIRST_TYPES)):
        yield from (_gemm("squares", dtype, n, n, n) for n in SQUARES)
        yield from (_gemm("llm", dtype, *shape) for shape in LLM)
    yield _gemm("tiers", "s8", 4096, 4096, 4096, only=("dp4a.*",), share=0.9)
    yield _gemm("tiers", "f16", 4096, 4096, 4096, only=("wmma.*",), share=0.9)
    yield from (_gemm("mma", dtype, 4096, 4096, 4096, only=("mma.*",), share=0.9) for dtype in ("f16", "s8"))
    for dtype in ("f16", "bf16", "s8", "e4m3"):
        yield from (_conv(dtype, *each) for each in CONVOLUTIONS)
    for peer, dtype, name, sizes in UNTUNED:
        label = "x".join(str(v) for v in sizes.values() if isinstance(v, int))
        yield Case("shapes", f"{peer}_{label}", dtype, name, sizes, peer)
    for dtype in ("f16", "bf16"):
        for heads, tokens in ATTENTION:
            yield from (_attention(dtype, heads, tokens, d, m) for d in (64, 128, 256) for m in ("full", "causal"))
    for dtype in TYPES:
        rest = ((m, n, k) for m in ROWS for n, k in WEIGHTS if (m, n, k) not in LLM)
        yield from (_gemm("llm", dtype, *shape) for shape in rest)
