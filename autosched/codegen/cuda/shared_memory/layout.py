"""A block's shared memory: where each buffer lies in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.tree.kernel import (
    AsyncCopies,
    BarrierArrive,
    BarrierWait,
    Buffer,
    Kernel,
    Stmt,
    TileCopy,
    statements,
)
from autosched.codegen.tree.uses import places

ALIGNMENT = 128
"""Of a buffer, in bytes: all banks once; and what TMA asks for."""
BARRIER_BYTES = 8
SWIZZLE_ROWS = 8
"""Rows of a swizzle's width after which chunks change places as before."""
LINE = 32
"""Of a piece that an opaque fragment passes through, in bytes: what its instructions ask for."""
SWIZZLED = 1024
"""Of one whose chunks change places: eight rows of 128 bytes, counted from where the hardware counts them."""


@dataclass(frozen=True)
class SharedMemory:
    """Buffers and barriers with their offsets in bytes, and what each buffer's is a multiple of; `bytes` of all."""

    offsets: dict[str, int]
    buffers: dict[str, Buffer]
    bytes: int
    barriers: dict[str, int]
    aligned: dict[str, int]

    @staticmethod
    def of(kernel: Kernel, body: tuple[Stmt, ...]) -> SharedMemory:
        """The shared buffers that the statements touch."""
        names: dict[str, None] = {}
        for stmt in statements(body):
            names |= dict.fromkeys(name for name, _ in places(stmt))
            if isinstance(stmt, TileCopy):
                names[stmt.buffer] = None
        held = {n: kernel.buffers[n] for n in names if kernel.buffers[n].scope == "shared"}
        aligned = {n: alignment_of(b) for n, b in held.items()}
        for box in (s for s in statements(body) if isinstance(s, TileCopy)):
            aligned[box.buffer] = max(aligned[box.buffer], ALIGNMENT, SWIZZLE_ROWS * box.map.swizzle)
        offsets: dict[str, int] = {}
        total = 0
        for name, buffer in sorted(held.items(), key=lambda item: (-aligned[item[0]], -own_bytes(item[1]))):
            align = aligned[name]
            total = -(-total // align) * align
            offsets[name] = total
            total += own_bytes(buffer)
        named = {s.barrier for s in statements(body) if isinstance(s, BarrierWait | BarrierArrive | AsyncCopies)}
        barriers = {name: slots for name, slots in kernel.barriers.items() if name in named}
        for name, slots in barriers.items():
            offsets[name] = total = -(-total // BARRIER_BYTES) * BARRIER_BYTES
            total += slots * BARRIER_BYTES
        return SharedMemory(offsets, held, total, barriers, aligned)

    def beside(self, more: Mapping[str, Buffer]) -> SharedMemory:
        """The same with further buffers between the others and the barriers."""
        offsets = dict(self.offsets)
        total = max((offsets[n] + own_bytes(b) for n, b in self.buffers.items()), default=0)
        for name, buffer in more.items():
            total = -(-total // LINE) * LINE
            offsets[name] = total
            total += own_bytes(buffer)
        for name, slots in self.barriers.items():
            offsets[name] = total = -(-total // BARRIER_BYTES) * BARRIER_BYTES
            total += slots * BARRIER_BYTES
        return replace(self, offsets=offsets, buffers={**self.buffers, **more}, bytes=total)

    def alignment(self) -> int:
        """Of all of it."""
        return max([ALIGNMENT, *self.aligned.values()])


def alignment_of(buffer: Buffer) -> int:
    """Where a buffer may begin: at a multiple of the largest power of two that divides its bytes, up to what the widest
    swizzle asks for; a narrower one's buffer consists of whole sets of eight rows, so that this is enough for it."""
    size = own_bytes(buffer)
    return max(16, min(SWIZZLED, size & -size))


def own_bytes(buffer: Buffer) -> int:
    """Bytes of a buffer in one block."""
    return buffer.elements * buffer.dtype.bytes
