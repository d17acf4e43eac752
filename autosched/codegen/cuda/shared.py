"""A block's shared memory: where each buffer lies in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.kernel import Assign, Buffer, For, IntrinsicCall, Kernel, Stmt, statements
from autosched.ir.value import Read, walk

ALIGNMENT = 128
"""Of a buffer, in bytes: all banks once."""
SWIZZLED = 1024
"""Of one whose chunks change places: eight rows of 128 bytes, counted from where the hardware counts them."""


@dataclass(frozen=True)
class SharedMemory:
    """Buffers and their offsets in bytes; `bytes` of all. A buffer of a cluster has a first dimension that numbers the
    cluster's blocks, each of which holds its own part."""

    offsets: dict[str, int]
    buffers: dict[str, Buffer]
    bytes: int
    ranked: bool

    @staticmethod
    def of(kernel: Kernel, body: tuple[Stmt, ...]) -> SharedMemory:
        """The shared buffers that the statements touch."""
        names: dict[str, None] = {}
        for stmt in statements(body):
            if isinstance(stmt, Assign):
                names[stmt.buffer] = None
                names |= dict.fromkeys(n.tensor for n in walk(stmt.value) if isinstance(n, Read))
            elif isinstance(stmt, IntrinsicCall):
                names |= dict.fromkeys(ref.buffer for ref in stmt.operands.values())
        ranked = any(isinstance(s, For) and s.kind == "cluster" for s in statements(body))
        held = {n: kernel.buffers[n] for n in names if kernel.buffers[n].scope == "shared"}
        offsets: dict[str, int] = {}
        total = 0
        for name, buffer in sorted(held.items(), key=lambda item: -own_bytes(item[1], ranked)):
            size = own_bytes(buffer, ranked)
            align = SWIZZLED if size % SWIZZLED == 0 else ALIGNMENT if size % ALIGNMENT == 0 else 16
            total = -(-total // align) * align
            offsets[name] = total
            total += size
        return SharedMemory(offsets, held, total, ranked)

    def beside(self, more: Mapping[str, Buffer]) -> SharedMemory:
        """The same with further buffers behind, none of which is numbered by a cluster."""
        offsets, total = dict(self.offsets), self.bytes
        for name, buffer in more.items():
            total = -(-total // ALIGNMENT) * ALIGNMENT
            offsets[name] = total
            total += own_bytes(buffer, False)
        return replace(self, offsets=offsets, buffers={**self.buffers, **more}, bytes=total)

    def alignment(self) -> int:
        """Of all of it."""
        sizes = [own_bytes(b, self.ranked) for b in self.buffers.values()]
        return SWIZZLED if any(size % SWIZZLED == 0 for size in sizes) else ALIGNMENT


def own_bytes(buffer: Buffer, ranked: bool) -> int:
    """Bytes of a buffer in one block."""
    shape = buffer.shape[1:] if ranked else buffer.shape
    total = buffer.dtype.bytes
    for n in shape:
        total *= n
    return total
