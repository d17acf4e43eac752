"""Programs of several stages that are measured on a GPU: decoding, feed-forward layers, products on narrow weights, on
blocks with scales, of 2:4 sparse data, of experts, behind a norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.cases import Case

BF16 = {"t": "bf16"}
NARROW = ("int4", "int8", "fp8")
GROUP = 128
"""Weights of a column that share a scale; rows and columns of a block that does."""


def chain_cases() -> Iterator[Case]:
    """The chains, group by group. All are planned at `--numerics real`: libraries reorder and round their sums, too."""
    for cache in (2048, 8192, 65536):
        batch = 16 if cache <= 8192 else 2
        sizes = {"h": 32 * batch, "n": 1, "l": cache, "d": 128, "group": 4, "mask": "full"}
        yield _case("decode", f"{batch}x32x{cache}x128", "attention_rounded", sizes, "decode")
    for m in (16, 512, 4096):
        yield _case("feed_forward", f"swiglu_{m}x4096x11008", "swiglu", {"m": m, "k": 4096, "f": 11008, "n": 4096})
    for kind in ("mlp", "geglu"):
        yield _case("feed_forward", f"{kind}_4096x4096x11008", kind, {"m": 4096, "k": 4096, "f": 11008, "n": 4096})
    for m in (1, 16, 128):
        for kind in NARROW:
            sizes = {"m": m, "n": 14336, "k": 4096, "g": GROUP}
            yield _case("weights", f"{kind}_{m}x14336x4096", f"matmul_{kind}", sizes, "narrow")
    for m, n, k in ((64, 7168, 2048), (4096, 7168, 2048), (4096, 4096, 7168)):
        sizes = {"m": m, "n": n, "k": k, "g": GROUP}
        yield _case("blocks", f"{m}x{n}x{k}", "matmul_fp8_blocks_nt", sizes, "blocks", "e4m3")
    for t, m, n, k in (("f16", 4096, 4096, 4096), ("s8", 4096, 4096, 4096), ("bf16", 4096, 128, 4096)):
        types = {"acc": "s32"} if t == "s8" else {"out": t}
        yield _case("sparse", f"{m}x{n}x{k}", "matmul_sparse", {"m": m, "n": n, "k": k, **types}, "sparse", t)
    experts = {"rows": "contiguous", "m": 8192, "n": 4096, "k": 7168, "experts": 8, "block": 128}
    yield _case("experts", "8192x4096x7168", "matmul_experts", experts, "experts")
    for kind in ("rms_norm_product", "layer_norm_product"):
        yield _case("norms", f"{kind}_4096x4096x4096", kind, {"m": 4096, "n": 4096, "k": 4096})
    yield _case("norms", "cross_entropy_4096x32768x4096", "cross_entropy", {"m": 4096, "k": 4096, "v": 32768})


def _case(
    group: str, label: str, workload: str, sizes: dict[str, Any], peer: str = "", dtype: str = "bf16"
) -> Case:
    return Case(group, label, dtype, workload, {**sizes, "t": dtype}, peer or workload, numerics="real")
