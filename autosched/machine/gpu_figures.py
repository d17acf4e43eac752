"""What a GPU's description must state, and which of its figures contradict each other.

A target is a GPU's when it says how many threads issue together. Schedules of such a target are laid out by its limits,
so one that is left out would be guessed: it is asked for instead.
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


def contradictions(limits: Mapping[str, int], memories: tuple[Memory, ...]) -> Iterator[tuple[str, str, str]]:
    """What is missing or impossible in a GPU's figures: (limit, message, hint); nothing for other targets."""
    if WARP not in limits:
        return
    for name in NEEDED:
        if name not in limits:
            yield "", f"missing limit {name!r}", f"a target with {WARP} states {', '.join(NEEDED)}"
            return
    warp, threads, registers = limits[WARP], limits["threads_per_block"], limits["registers_per_core"]
    if threads % warp:
        yield "threads_per_block", f"{threads} threads in a block are no whole number of warps of {warp}", ""
    if registers < warp:
        yield "registers_per_core", f"{registers} registers a core are not one for each thread of a warp", ""
    shared, used = next((m for m in memories if m.name == "shared"), None), limits["shared_bytes"]
    if shared is None:
        yield "shared_bytes", "shared_bytes of which memory?", "describe a memory called `shared`"
    elif used > shared.bytes:
        message = f"a block's {used:,} bytes of shared memory are more than the core's {shared.bytes:,}"
        yield "shared_bytes", message, "shared_bytes is what one block may have, the memory's bytes are the core's"
