"""What a nest waits for where an operand streams through it from memory or the last cache, beyond the bandwidth.

The first pass of row tiles over a block waits: the more a core computes on a line, the fewer lines it waits for at a
time, unless they are asked for ahead, and each tile starts with an empty pipeline. The passes after it read the block
from the second cache. Where all passes ask for the next block, each of them lets a share of it in
(`steps.cpu.prefetch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.cpu.tlb import neighbours
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import COLUMNS, DIRECT, StepNames, blocked_axes
from autosched.tiling.steps.common.layout import tensor_elements
from autosched.tiling.steps.cpu.prefetch import NEXT, NO, passed_over, streamed_bytes, streams

# Constants of the code generator, measured with f32 matrices of 64 MiB and 1 to 33 rows on Zen 5 (streams on Zen 3).
WAITED, WAITED_AHEAD = 1.2, 0.35  # share of the shorter of work and memory that waits, and where it is asked for ahead
REREAD = 2.4  # what a pass takes to read lines anew out of L2, as a multiple of their time at its bandwidth
ASKING = 0.05  # share of the time from memory that asking ahead costs (one row loses 7 %, 16 rows gain 25)
STARTING = 4.0  # latencies of memory until a first pass over a block is in full flow (4 rows: 0.25 to 0.5 µs a block)
SEVERAL_STREAMS = 0.8  # share of the time from memory that is left where columns are read (64 MiB; 21 and 27 GB/s)

Column = npt.NDArray[Any]


def by_streams(nest: Nest, names: StepNames, v: Mapping[str, npt.NDArray[np.int64]]) -> Column:
    """The share of the time from memory, by one stream, that is left."""
    columns = [v[names.pack(o.name)] == COLUMNS for o in nest.intrinsic.inputs]
    return np.where(np.any(columns, axis=0), SEVERAL_STREAMS, 1.0)


def knows_prefetch(nest: Nest) -> bool:
    """Whether prefetching changes what the clock says of the nest."""
    return nest.depth is not None and bool(nest.lanes) and streams(nest)


def waited_seconds(
    nest: Nest,
    names: StepNames,
    v: Mapping[str, npt.NDArray[np.int64]],
    terms: Mapping[str, Column],
    target: Target,
    unhidden: float,
) -> Column:
    """Seconds more than the longest of `terms` and the share `unhidden` of the others; `v` holds `prefetch` too."""
    asked = v[names("prefetch")]
    work = np.maximum(terms["compute"], terms["load"])
    source = np.maximum(np.maximum(terms["memory"], terms["l3"]), 1e-12)
    passes, part = _passes(nest, names, v), _part(names, v)
    again = REREAD * streamed_bytes(nest) / _l2_bandwidth(target) * part
    first = work / passes
    share = np.where(asked == NO, WAITED, WAITED_AHEAD) * np.minimum(first / source, 1.0)
    starting = STARTING * _latency(target, terms) * _starts(nest, names, v) * part
    streamed = np.maximum(first, source) + share * np.minimum(first, source) + starting
    streamed = streamed + np.maximum(first, again) * (passes - 1)
    longest, shorter = np.maximum(work, source), np.minimum(work, source)
    shared = np.maximum(longest, terms["l3"] + again * passes)
    took = np.where(asked == NEXT, shared, streamed) - longest - unhidden * shorter
    return np.maximum(took, 0.0) + np.where(asked == NO, 0.0, ASKING * source)


def _passes(nest: Nest, names: StepNames, v: Mapping[str, npt.NDArray[np.int64]]) -> Column:
    """How often the streaming operand is read while a cache holds it: by each tile of a block's rows."""
    rows = blocked_axes(nest)[1]
    if rows is None or passed_over(nest) is None:
        return np.ones(len(v[names("threads")]))
    tiles, block = v[names.tiles(rows)], v[names.block(rows)]
    return np.where(block == 0, tiles, np.minimum(block, tiles)).astype(np.float64)


def _starts(nest: Nest, names: StepNames, v: Mapping[str, npt.NDArray[np.int64]]) -> Column:
    """Blocks that a register tile streams through, over the lanes and the depth. In a tensor as it lies the next tile
    along the lanes reads on where this one stopped."""
    lanes, _, depth = blocked_axes(nest)
    assert lanes is not None
    assert depth is not None
    starts = (v[names.tiles(lanes)] * v[names(f"blocks_{depth.name}")]).astype(np.float64)
    largest = max(nest.intrinsic.inputs, key=lambda o: tensor_elements(nest, o.name) * o.dtype.bytes)
    return np.where(v[names.pack(largest.name)] == DIRECT, starts / neighbours(nest, names, v), starts)


def _part(names: StepNames, v: Mapping[str, npt.NDArray[np.int64]]) -> Column:
    """A thread's part of the work."""
    return 1.0 / v[names("threads")].astype(np.float64)


def _l2_bandwidth(target: Target) -> float:
    found = next((m for m in target.memories if m.name == "L2"), None)
    return 64.0 * target.clock_hz if found is None or not found.bandwidth_bytes_per_s else found.bandwidth_bytes_per_s


def _latency(target: Target, terms: Mapping[str, Column]) -> Column:
    """Of what the operand comes from, in seconds."""
    known = {m.name: m.latency_s or 0.0 for m in target.memories}
    last = target.memories[-1].latency_s or 0.0 if target.memories else 0.0
    return np.where(terms["memory"] > 0.0, last, known.get("L3", 0.0))
