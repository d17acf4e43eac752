"""Tile loops: how many threads share the iterations of the parallel one."""

from __future__ import annotations

from autosched.logic import Const
from autosched.tiling.plans.plan import TileLoopsPart
from autosched.tiling.step import Decision, Handle, Step

THREADS = Handle("threads")


def tile_loops_step(part: TileLoopsPart, threads: int) -> Step:
    """`threads`, no more than the loop that they share has iterations (`shares`). What is inside runs on one thread."""
    most = max(1, part.shared.axis.extent) if part.shared else 1
    count = Decision(part.names(THREADS.name), tuple(range(1, min(threads, most) + 1)))
    return Step("tile loops", (count,), (), {part.names("shares"): Const(most)})
