"""A matmul in Triton as its users write one: tiles, a pipelined loop over the depth, blocks in groups of rows, and an
autotuner over the sizes that matter on Hopper."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_TILES = (
    (128, 256, 64, 3, 8),
    (128, 256, 64, 4, 8),
    (128, 128, 64, 4, 8),
    (128, 128, 64, 4, 4),
    (128, 128, 128, 3, 8),
    (256, 128, 64, 3, 8),
    (64, 256, 64, 4, 4),
    (64, 128, 64, 5, 4),
    (64, 128, 128, 4, 4),
    (64, 64, 128, 5, 4),
    (32, 64, 128, 5, 4),
    (16, 64, 128, 6, 4),
    (16, 128, 128, 5, 4),
    (16, 32, 256, 5, 2),
)
"""Rows, columns and depth of a tile, stages, warps."""
_CONFIGS = [
    triton.Config({"TM": m, "TN": n, "TK": k, "GROUP": 8}, num_stages=stages, num_warps=warps)
    for m, n, k, stages, warps in _TILES
]


@triton.autotune(configs=_CONFIGS, key=["m", "n", "k", "integer"])
@triton.jit
def _product(
    a, b, c, m, n, k, integer: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, GROUP: tl.constexpr
):
    block = tl.program_id(0)
    rows, columns = tl.cdiv(m, TM), tl.cdiv(n, TN)
    in_group = GROUP * columns
    first = block // in_group * GROUP
    height = min(rows - first, GROUP)
    row = first + block % in_group % height
    column = block % in_group // height
    i = (row * TM + tl.arange(0, TM)) % m
    j = (column * TN + tl.arange(0, TN)) % n
    p = tl.arange(0, TK)
    from_a = a + i[:, None] * k + p[None, :]
    from_b = b + j[None, :] * k + p[:, None]
    total = tl.zeros((TM, TN), dtype=tl.int32 if integer else tl.float32)
    for step in range(tl.cdiv(k, TK)):
        inside = p < k - step * TK
        x = tl.load(from_a, mask=inside[None, :], other=0.0)
        y = tl.load(from_b, mask=inside[:, None], other=0.0)
        total = tl.dot(x, y, total, out_dtype=tl.int32 if integer else tl.float32)
        from_a += TK
        from_b += TK
    i = row * TM + tl.arange(0, TM)
    j = column * TN + tl.arange(0, TN)
    to = c + i[:, None] * n + j[None, :]
    tl.store(to, total.to(c.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


def launch(a: Any, b: Any, c: Any) -> Any:
    """`c = a bᵀ` with rows of `b` as columns; returns `c`."""
    (m, k), (n, _) = a.shape, b.shape

    def grid(meta: Any) -> tuple[int]:
        return (triton.cdiv(m, meta["TM"]) * triton.cdiv(n, meta["TN"]),)

    _product[grid](a, b, c, m, n, k, integer=a.dtype == torch.int8)
    return c
