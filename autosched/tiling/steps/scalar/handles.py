"""Decisions of scalar parts, rows parts and teams of a GPU's threads, as lowering reads them."""

from __future__ import annotations

from autosched.tiling.step import Handle

CACHED, PAST = 0, 1
"""Where results are written: through the caches, or past them."""
LIBRARY, FORMULAS = 0, 1
"""How functions are computed."""

VECTOR = Handle("vector", 1)
UNROLL = Handle("unroll", 1)
ROWS = Handle("rows", 1)
BLOCK = Handle("block", 0)
THREADS = Handle("threads", 1)
MATH = Handle("math", LIBRARY)
STORES = Handle("stores", CACHED)
AHEAD = Handle("ahead", 0)
WARPS = Handle("warps", 1)
HOLD = Handle("hold", 0)
SPLIT = Handle("split", 1)
TILE = Handle("tile", 0)


def results_per_thread(axis: str) -> Handle:
    """How many results along an axis one thread computes."""
    return Handle(f"each_{axis}", 1)
