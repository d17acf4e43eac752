"""What is proved of where a kernel's shared memory lies: buffers and barriers are apart, aligned, inside, and whoever
asks for one of several stages asks for one that there is.

`tiling.steps.gpu.operands.shared_proofs` proves the rest: that an element of a slice has a place inside its buffer, and
none shares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from autosched.codegen.cuda.shared_memory.layout import BARRIER_BYTES, SharedMemory, own_bytes
from autosched.codegen.tree.kernel import AsyncCopies, BarrierArrive, BarrierWait, Kernel, statements
from autosched.logic import Int, free_vars, to_z3
from autosched.logic.solver import proving, z3
from autosched.tiling.steps.gpu.operands.shared_proofs import LayoutProof, valid

STEADY = "shared memory"
"""Of all operands together."""


@proving
def prove_placed(kernel: Kernel, memory: SharedMemory, limit: int) -> list[LayoutProof]:
    """The statements about one launch of a kernel: `memory` is what its blocks hold, of at most `limit` bytes."""
    return [*_apart(memory), _aligned(memory), _inside(memory, limit), *_stages(kernel, memory)]


def _apart(memory: SharedMemory) -> Iterator[LayoutProof]:
    """Neighbours in memory do not overlap, so no two do."""
    placed = sorted((start, start + size, name) for name, (start, size) in _spans(memory).items())
    overlap = [f"{a[2]} ends at {a[1]:,}, {b[2]} begins at {b[0]:,}" for a, b in pairwise(placed) if a[1] > b[0]]
    case = ", ".join(f"{name} {start:,} to {end:,}" for start, end, name in placed)
    yield LayoutProof("slices, tiles and barriers do not overlap", STEADY, case, not overlap, "; ".join(overlap))


def _aligned(memory: SharedMemory) -> LayoutProof:
    """Of their own bytes or of what TMA asks, and of a barrier's eight."""
    asked = {name: memory.aligned.get(name, 1) for name in memory.buffers} | dict.fromkeys(
        memory.barriers, BARRIER_BYTES
    )
    odd = [f"{name} at {memory.offsets[name]:,}" for name, n in asked.items() if memory.offsets[name] % n]
    case = ", ".join(f"{name} {n:,}" for name, n in asked.items())
    return LayoutProof("each begins at a multiple of its alignment", STEADY, case, not odd, "; ".join(odd))


def _inside(memory: SharedMemory, limit: int) -> LayoutProof:
    end = max((start + size for start, size in _spans(memory).values()), default=0)
    holds = end <= memory.bytes <= limit
    return LayoutProof("all of it is asked for and there is as much", STEADY, f"{end:,} bytes of {limit:,}", holds)


def _stages(kernel: Kernel, memory: SharedMemory) -> Iterator[LayoutProof]:
    """Whatever slice a block is at, the barrier's stage is one of those that there are."""
    asked: dict[tuple[str, Int], None] = {}
    for stmt in statements(kernel.main.body):
        if isinstance(stmt, BarrierWait | BarrierArrive | AsyncCopies) and stmt.barrier in memory.barriers:
            asked[stmt.barrier, stmt.slot] = None
    for barrier, slot in asked:
        names = {n: z3.Int(n) for n in free_vars(slot)}
        number = to_z3(slot, names)
        inside = z3.And(number >= 0, number < memory.barriers[barrier])
        counted = z3.And(*(n >= 0 for n in names.values()))
        yield valid("a stage is one of its barrier's", barrier, str(slot), z3.Implies(counted, inside))


def _spans(memory: SharedMemory) -> dict[str, tuple[int, int]]:
    """Offset and bytes of each buffer and barrier."""
    found = {name: (memory.offsets[name], own_bytes(buffer)) for name, buffer in memory.buffers.items()}
    return found | {name: (memory.offsets[name], slots * BARRIER_BYTES) for name, slots in memory.barriers.items()}
