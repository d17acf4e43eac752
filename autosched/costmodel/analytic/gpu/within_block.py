"""The analytic clock of tile loops on a GPU: each part of the body takes what it would take as a kernel on one core,
without its launch; a barrier follows. Blocks of the grid go on at once on all cores, and a few on each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.gpu_clock import LAUNCH_SECONDS
from autosched.machine.target import Target
from autosched.tiling.plans.plan import TileLoopsPart

BARRIER_CYCLES = 40.0  # of a block's threads that meet after a part (a round figure)

Columns = Mapping[str, npt.NDArray[np.int64]]
Terms = dict[str, npt.NDArray[np.float64]]


def one_core(target: Target) -> Target:
    """A core with its share of what all cores share."""
    memories = tuple(
        replace(m, bandwidth_bytes_per_s=m.bandwidth_bytes_per_s / target.cores)
        if m.shared_by == "device" and m.bandwidth_bytes_per_s
        else m
        for m in target.memories
    )
    return replace(target, cores=1, memories=memories)


def within_block(terms: Terms, target: Target) -> Terms:
    """Terms of a kernel as those of a part of a block: a barrier in place of the launch."""
    launch = next((name for name in ("launch", "overhead") if name in terms), None)
    if launch is None:
        return terms
    barrier = np.full_like(terms["total"], BARRIER_CYCLES / target.clock_hz)
    return terms | {launch: barrier, "total": terms["total"] - terms[launch] + barrier}


def grid_terms(part: TileLoopsPart, v: Columns, target: Target) -> Terms:
    """What tile loops take beside what is inside: the launch, and intermediates that go through memory (written and
    read once an iteration; they stay in the cache that all cores share)."""
    threads = v[part.names("threads")].astype(np.float64)
    none = np.zeros_like(threads)
    if not part.grid:
        return {"launch": none, "l2": none, "total": none}
    shared = next((m.bandwidth_bytes_per_s for m in target.memories if m.name == "L2"), None)
    moved = 2.0 * part.trips * v[part.names("block_memory")].astype(np.float64) / (shared or np.inf)
    launch = np.full_like(threads, LAUNCH_SECONDS)
    return {"launch": launch, "l2": moved, "total": launch + moved}
