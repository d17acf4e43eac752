"""What a nest waits for where an operand beyond the second cache is read in steps from page to page.

A register tile that walks along the depth of a matrix as it lies (rows of 4 KiB and more) reads a line or a few on each
page. Nothing announces these lines: prefetchers stop at a page's end, and the pages outnumber what the first
translation cache holds. The next tile along the lanes finds pages and neighbouring lines again where the depth was
short in between; else every step waits anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import BLOCK, DIRECT, INTERLEAVED, ORDERS, PADDED, PANEL, StepNames, blocked_axes
from autosched.tiling.steps.common.layout import depth_stride, tensor_elements

STEP_CYCLES = 24.0
"""A line on a page that nothing announced (Zen 5, 16 MiB of bytes, rows of 4 KiB, one row and sixteen: 15 to 50)."""
FOUND_CYCLES = 12.0
"""One on a page that the tile before has visited, where there are too many for a prefetcher to follow."""
PAGES_KEPT, PAGES_FOLLOWED = 512, 8
"""Rows that a tile may walk over before the next one finds them kept, and those that are read on as lines in order (one
row and f32 4096x4096 takes 1.74 ms with 8 rows at a time, 1.91 with 16, 2.04 with 32, 2.16 with 64 to 512)."""

Column = npt.NDArray[Any]
Columns = Mapping[str, Column]


def paging_seconds(nest: Nest, names: StepNames, v: Columns, target: Target) -> Column:
    """Seconds that the busiest thread waits for steps from page to page, in the first pass over each operand."""
    seconds = np.zeros(len(v[names("order")]))
    lanes, _, depth = blocked_axes(nest)
    if lanes is None or depth is None:
        return seconds
    for o in nest.intrinsic.inputs:
        if lanes not in nest.operand_axes(o.name) or not _apart(nest, o.name, target):
            continue
        kind = v[names.pack(o.name)]
        known = nest.mapping.program.known(nest.mapping.operands[o.name].tensor)
        as_it_lies = kind == DIRECT if known else np.isin(kind, (DIRECT, PADDED, PANEL, BLOCK))
        rows = np.where(as_it_lies, depth.unit, np.where(kind == INTERLEAVED, 1, 0)) * depth.units
        tiles = v[names.tiles(lanes)]
        walked = rows / v[names(f"blocks_{depth.name}")]
        found = np.where(walked > PAGES_FOLLOWED, FOUND_CYCLES, 0.0)
        cached = (walked <= PAGES_KEPT) & (kind != PANEL)
        cycles = np.where(cached, found + STEP_CYCLES / neighbours(nest, names, v), STEP_CYCLES)
        seconds += cycles * rows * tiles / target.clock_hz
    return seconds / v[names("threads")]


def page_bytes(target: Target) -> int:
    """Bytes of a page of memory."""
    return int(target.limits.get("page_bytes", 4096))


def pages_apart(nest: Nest, operand: str, target: Target) -> int:
    """Pages that one register of the operand lies on where each step along the depth is on another page; else 0."""
    depth, page = nest.depth, page_bytes(target)
    step = depth_stride(nest, operand) * nest.intrinsic.operands[operand].dtype.bytes
    if depth is None or step < page:
        return 0
    return depth.unit if step // depth.unit >= page else 1


def _apart(nest: Nest, operand: str, target: Target) -> bool:
    """Whether steps along the depth go from page to page in a tensor that the second cache does not hold."""
    o, depth = nest.intrinsic.operands[operand], nest.depth
    if depth is None:
        return False
    second = next((m.bytes for m in target.memories if m.name == "L2"), 0)
    step = depth_stride(nest, operand) // depth.unit * o.dtype.bytes
    return step >= page_bytes(target) and tensor_elements(nest, operand) * o.dtype.bytes > second


def neighbours(nest: Nest, names: StepNames, v: Columns) -> Column:
    """Tiles along the lanes that are computed one after another over the same block of the depth."""
    lanes, _, depth = blocked_axes(nest)
    assert lanes is not None
    assert depth is not None
    tiles, block = v[names.tiles(lanes)], v[names.block(lanes)]
    outside = np.array([order.index(2) < order.index(0) for order in ORDERS])[v[names("order")]]
    return np.where(outside | (block == 0), tiles, np.minimum(block, tiles))
