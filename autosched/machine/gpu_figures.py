"""What a GPU's description must state, and which of its figures contradict each other.

A target is a GPU's when it says how many threads issue together. Schedules of such a target are laid out by its limits
and timed by three of its memories, so one that is left out would be guessed, or cost nothing: it is asked for instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autosched.machine.target import Memory

WARP = "warp_threads"
NEEDED = (
    "threads_per_block",
    "warps_per_core",
    "blocks_per_core",
    "registers_per_core",
    "registers_per_thread",
    "shared_bytes",
)
LEVELS = ("shared", "L2", "DRAM")

Path = tuple[str | int, ...]
"""Where in the file: keys and places in lists."""


def contradictions(limits: Mapping[str, int], memories: tuple[Memory, ...]) -> Iterator[tuple[Path, str, str]]:
    """What is missing or impossible in a GPU's figures: (place, message, hint); nothing for targets that state none."""
    if WARP not in limits:
        if stated := [name for name in NEEDED if name in limits]:
            yield ("limits",), f"missing limit {WARP!r}", f"{stated[0]} is a GPU's, and {WARP} makes a target one"
        return
    for name in NEEDED:
        if name not in limits:
            yield ("limits",), f"missing limit {name!r}", f"a target with {WARP} states {', '.join(NEEDED)}"
            return
    warp, threads, registers = limits[WARP], limits["threads_per_block"], limits["registers_per_core"]
    if threads % warp:
        message = f"{threads} threads in a block are no whole number of warps of {warp}"
        yield ("limits", "threads_per_block"), message, ""
    if registers < warp:
        message = f"{registers} registers a core are not one for each thread of a warp"
        yield ("limits", "registers_per_core"), message, ""
    described = {m.name: m for m in memories}
    for name in LEVELS:
        if name not in described:
            hint = f"a target with {WARP} has {', '.join(LEVELS)}; here: {', '.join(described)}"
            yield ("memories",), f"missing memory {name!r}", hint
            return
        memory = described[name]
        for figure, value in (("bandwidth", memory.bandwidth_bytes_per_s), ("latency", memory.latency_s)):
            if value is None:
                yield ("memories", memories.index(memory)), f"{name} has no {figure}", "kernels are timed by it"
    shared, used = described["shared"], limits["shared_bytes"]
    if used > shared.bytes:
        message = f"a block's {used:,} bytes of shared memory are more than the core's {shared.bytes:,}"
        hint = "shared_bytes is what one block may have, the memory's bytes are the core's"
        yield ("limits", "shared_bytes"), message, hint
