"""What is measured: the built-in chains by group, with what each is held against. Names are `group/series/label`.

`operations` are those of the products alone, two a multiply-add, and of causal attention only those not masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIRST = "first_convolution.py"
CACHED = {"n": 256, "k": 256}
"""Weights of an f32 product that stay in a core's second cache (256 KiB)."""


@dataclass(frozen=True)
class Part:
    """A kernel of its own. `names` maps its tensors to the chain's, or to names under which parts share memory. `file`
    is one of `benchmarks/programs`; without it the program is a workload."""

    workload: str
    sizes: dict[str, Any] = field(hash=False)
    names: dict[str, str] = field(default_factory=dict, hash=False)
    packed: bool = True
    file: str = ""

    @property
    def path(self) -> str:
        """Where the file is; empty without one."""
        return str(Path(__file__).parents[1] / "programs" / self.file) if self.file else ""


@dataclass(frozen=True)
class Apart:
    """Kernels of ours that run one after the other. `result` is the memory to compare with the chain's output, where
    they compute the same. `asked`: the least ratio of speeds, operations a second, chain to these; 0: nothing is."""

    name: str
    parts: tuple[Part, ...]
    operations: float
    result: str = ""
    asked: float = 0.0


@dataclass(frozen=True)
class Case:
    """`weights` names the tensor of narrow weights, for which a roofline is measured; `roofline` is the least share of
    it that is asked. `small`: measured without `--full`. `of_peers`: the least ratio to any peer that is asked."""

    group: str
    series: str
    label: str
    workload: str
    sizes: dict[str, Any] = field(hash=False)
    operations: float
    apart: tuple[Apart, ...] = ()
    weights: str = ""
    roofline: float = 0.0
    of_peers: float = 0.0
    small: bool = True

    @property
    def name(self) -> str:
        return f"{self.group}/{self.series}/{self.label}"


def attention(mask: str, h: int, n: int, d: int, t: str = "f32", small: bool = True) -> Case:
    """Held against Q Kᵀ and P V of whole heads: batches of products, of which nothing is constant. P is f32."""
    batch = {"batch": h, "m": n}
    parts = (
        Part("batch_matmul", {**batch, "n": n, "k": d, "tb": 1, "a": t, "b": t}, {"A": "Q", "B": "K", "C": "S"}, False),
        Part("batch_matmul", {**batch, "n": d, "k": n, "a": "f32", "b": t}, {"A": "S", "B": "V"}, False),
    )
    whole = 4.0 * h * n * n * d
    asked = (0.80 if mask == "causal" else 0.85) if n >= 512 else 0.0
    products = Apart("our Q Kᵀ and P V", parts, whole, asked=asked)
    sizes = {"mask": mask, "h": h, "n": n, "l": n, "d": d, "t": t}
    valid = whole * (n + 1) / (2 * n) if mask == "causal" else whole
    return Case("attention", f"{mask}/{t}", f"h{h}_n{n}_d{d}", "attention", sizes, valid, (products,),
                of_peers=1.0, small=small)  # fmt: skip


def feed_forward(kind: str, m: int, k: int, f: int, t: str = "f32", small: bool = True) -> Case:
    """`mlp` has two products, `swiglu` three. Results are as wide as X."""
    up = [Part("matmul", {"m": m, "n": f, "k": k, "t": t}, {"A": "X", "B": w}) for w in ("W", "U")]
    down = Part("matmul", {"m": m, "n": k, "k": f, "t": t}, {"B": "D"})
    parts = (*(up if kind == "swiglu" else up[:1]), down)
    operations = 2.0 * m * k * f * len(parts)
    sizes = {"m": m, "k": k, "f": f, "n": k, "t": t}
    return Case("feed_forward", f"{kind}/{t}", f"m{m}_k{k}_f{f}", kind, sizes, operations,
                (Apart("our products", parts, operations, asked=0.97),), of_peers=1.0, small=small)  # fmt: skip


def quantized(bits: int, m: int, n: int, k: int, g: int, small: bool = True) -> Case:
    """Weights of so many bits, of which `g` along a column share a scale; f32 activations."""
    operations = 2.0 * m * n * k
    few = m == 1
    plain = Part("matmul", {"m": m, "n": n, "k": k}, {"A": "X"})
    cached = Part("matmul", {"m": m, **CACHED})
    apart = (
        Apart("our f32 product", (plain,), operations),
        Apart("our f32 product, cached weights", (cached,), 2.0 * m * CACHED["n"] * CACHED["k"],
              asked=0.0 if few else 0.85),
    )  # fmt: skip
    sizes = {"m": m, "n": n, "k": k, "g": g}
    label = f"m{m}_n{n}_k{k}_" + ("columns" if g == k else f"g{g}")
    return Case("quantized", f"int{bits}", label, f"matmul_int{bits}", sizes, operations, apart,
                weights="W" if few else "", roofline=0.80 if few else 0.0, small=small)  # fmt: skip


def separable(kind: str, size: int, ci: int, c: int, co: int, small: bool = True) -> Case:
    """`depthwise` (ci = c) or `conv2d`: 3 by 3, then 1 by 1. Held against the two as kernels of ours."""
    image = {"h": size, "w": size}
    channels = {"c": c} if kind == "depthwise" else {"ci": ci, "c": c}
    first = Part(f"{kind}_relu6", {**image, **channels}, {"X": "X", "D": "D", "B": "B"}, file=FIRST)
    second = Part("matmul", {"m": size * size, "n": co, "k": c}, {"A": "B", "B": "P", "C": "Y of two kernels"})
    taps = float(3 * size - 2) ** 2
    operations = 2 * taps * c * (1 if kind == "depthwise" else ci) + 2.0 * size * size * c * co
    two = Apart("our two kernels", (first, second), operations, "Y of two kernels", asked=1.3)
    label = f"{size}x{size}_" + (f"{c}_{co}" if kind == "depthwise" else f"{ci}_{c}_{co}")
    return Case("separable", kind, label, f"{kind}_pointwise", {**image, **channels, "co": co}, operations, (two,),
                small=small)  # fmt: skip


def inverted(size: int, st: int, ci: int, c: int, co: int, small: bool = True) -> Case:
    """1 by 1, depthwise 3 by 3 at every `st`-th position, 1 by 1. Held against the three as kernels of ours."""
    before = (size * st) ** 2
    parts = (
        Part("pointwise_relu6", {"m": before, "ci": ci, "c": c}, {"X": "X", "E": "E", "G": "G"}, file=FIRST),
        Part("depthwise_relu6", {"h": size, "w": size, "st": st, "c": c},
             {"X": "G", "D": "D", "B": "B"}, file=FIRST),
        Part("matmul", {"m": size * size, "n": co, "k": c}, {"A": "B", "B": "P", "C": "Y of three kernels"}),
    )
    taps = float(3 * size - (2 if st == 1 else 1)) ** 2  # one line and column less at each border that a window crosses
    operations = 2.0 * (before * ci * c + taps * c + size * size * c * co)
    three = Apart("our three kernels", parts, operations, "Y of three kernels", asked=1.3)
    sizes = {"h": size, "w": size, "st": st, "ci": ci, "c": c, "co": co}
    label = f"{size}x{size}_s{st}_{ci}_{c}_{co}"
    return Case("separable", "inverted", label, "inverted_residual", sizes, operations, (three,), small=small)


def _cases() -> Iterator[Case]:
    for t in ("f32", "bf16"):
        for mask in ("full", "causal"):
            for h, n, d in ((4, 128, 64), (8, 512, 64), (4, 1024, 128)):
                yield attention(mask, h, n, d, t, small=t == "f32" or n == 512)
            for h, n, d in ((12, 128, 128), (12, 512, 64), (12, 1024, 64), (8, 2048, 128), (4, 2048, 64),
                            (4, 4096, 64), (12, 4096, 128)):  # fmt: skip
                yield attention(mask, h, n, d, t, small=False)
    for t in ("f32", "bf16"):
        for kind in ("swiglu", "mlp"):
            for m, k, f in ((16, 768, 2048), (96, 768, 2048)):
                yield feed_forward(kind, m, k, f, t, small=t == "f32")
            for m, k, f in ((1, 1024, 4096), (128, 1024, 4096), (512, 768, 3072)):
                yield feed_forward(kind, m, k, f, t, small=False)
    for bits, groups in ((4, (128,)), (8, (128, 0))):
        for m in (1, 16):
            for n, k in ((1024, 1024), (4096, 4096)):
                for g in groups:
                    yield quantized(bits, m, n, k, g or k)
            for g in groups:
                yield quantized(bits, m, 11008, 4096, g or 4096, small=False)
    for size, c, co in ((112, 32, 64), (56, 128, 128), (14, 512, 512)):
        yield separable("depthwise", size, c, c, co)
    for size, c, co in ((28, 256, 256), (7, 1024, 1024)):
        yield separable("depthwise", size, c, c, co, small=False)
    for size, ci, c, co in ((56, 64, 64, 256), (14, 256, 256, 1024)):
        yield separable("conv2d", size, ci, c, co)
    for size, ci, c, co in ((28, 128, 128, 512), (7, 512, 512, 2048)):
        yield separable("conv2d", size, ci, c, co, small=False)
    for size, st, ci, c, co in ((56, 2, 16, 96, 24), (56, 1, 24, 144, 24), (112, 2, 32, 192, 32)):
        yield inverted(size, st, ci, c, co)
    for size, st, ci, c, co in ((28, 2, 24, 144, 32), (14, 1, 64, 384, 96), (112, 1, 24, 144, 24)):
        yield inverted(size, st, ci, c, co, small=False)


CASES: tuple[Case, ...] = tuple(_cases())
