"""What a nest on a CPU moves between caches, in seconds, and what it takes at least by that alone.

`least_seconds` stands between a floor, which leaves these bytes out, and the whole time: it needs a row's loops and
blocks, but neither how often a body is unrolled nor what is prefetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.cpu.streams import by_streams
from autosched.costmodel.analytic.cpu.tlb import page_bytes, paging_seconds
from autosched.costmodel.analytic.cpu.traffic import traffic
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.space.memoize_columns import memoize_columns
from autosched.tiling.space.values import rows_of
from autosched.tiling.steps import StepNames, blocked_axes, tiled_axes
from autosched.tiling.steps.cpu.outer_tile_order import line_axis

LEVELS = ("l2", "l3", "memory")
"""The terms, each what comes out of one level."""
CACHE_SHARE = 0.75  # part of a cache that one nest can count on

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


def moved_seconds(nest: Nest, names: StepNames, v: Columns, target: Target, share: Column) -> dict[str, Column]:
    """Seconds per row of the terms of LEVELS; `share` is the busiest thread's part of the work."""
    sizes, page = capacities(target), page_bytes(target)
    moved = memoize_columns(
        v, names("clock traffic"), lambda v: traffic(nest, names, moving(nest, names, v), sizes, page)
    )
    terms = seconds_of(moved, target, share)
    terms["memory"] = terms["memory"] * by_streams(nest, names, v)
    return terms


def capacities(target: Target) -> tuple[float, ...]:
    """Bytes of each cache that a nest can count on."""
    caches = [m for m in target.memories if m.shared_by in ("core", "device") and m.name.startswith("L")]
    return tuple(m.bytes * CACHE_SHARE for m in caches)


def seconds_of(moved: Sequence[Column], target: Target, share: Column) -> dict[str, Column]:
    """The terms of LEVELS for the bytes that come into each cache."""
    terms = dict.fromkeys(LEVELS, np.zeros(len(share)))
    for name, bytes_in, (all_cores, one_core) in zip(LEVELS, moved, _bandwidths(target), strict=False):
        terms[name] = np.maximum(bytes_in / all_cores, bytes_in * share / one_core)
    return terms


def least_seconds(
    nest: Nest, names: StepNames, v: Columns, target: Target, share: Column, unhidden: float, floor: Column
) -> Column:
    """Seconds that rows take at least whose floor is `floor` or more.

    A nest takes its longest term, the share `unhidden` of the others, and what nothing hides. With S the sum of what
    moves and m the most of it, that is floor + unhidden·S where another term is the longest; where m is, m takes that
    one's place: no less than m + unhidden·(S - m) + unhidden·floor.
    """
    moved = moved_seconds(nest, names, v, target, share)
    sums, most = sum(moved.values(), start=np.zeros(rows_of(v))), np.maximum.reduce([*moved.values()])
    hidden = floor + unhidden * sums + (1.0 - unhidden) * np.maximum(0.0, most - floor)
    paging = memoize_columns(v, names("clock pages"), lambda v: (paging_seconds(nest, names, v, target),))[0]
    return np.asarray(hidden + paging, np.float64)


def moving(nest: Nest, names: StepNames, v: Columns) -> dict[str, npt.NDArray[np.int64]]:
    """The columns that say what moves between caches."""
    tiled = tiled_axes(nest)
    found = [names("order"), names("inner"), *map(names.register, tiled), *map(names.tiles, tiled)]
    found += [names.pack(o.name) for o in nest.intrinsic.inputs]
    lanes, rows, depth = blocked_axes(nest)
    found += [names.block(a) for a in (lanes, rows, depth) if a]
    found += [] if depth is None else [names(f"blocks_{depth.name}")]
    found += [] if line_axis(nest) is None else [names("lines")]
    return {name: v[name] for name in found}


def _bandwidths(target: Target) -> list[tuple[float, float]]:
    """Bytes per second out of L2, L3 and main memory, for all cores together (a level of each core's own has no such
    limit) and for one core."""
    found = []
    for m in target.memories:
        if m.name not in ("L1", "registers"):
            whole = m.bandwidth_bytes_per_s or {"L2": 64.0, "L3": 16.0}.get(m.name, 4.0) * target.clock_hz
            shared = m.shared_by == "device"
            found.append((whole, m.core_bandwidth_bytes_per_s or whole) if shared else (float("inf"), whole))
    return found
