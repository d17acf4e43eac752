"""The memory that a call of a kernel works in, beside the program's tensors: one block, which the caller provides."""

from __future__ import annotations

from autosched.codegen.tree.kernel import Buffer, Kernel

CPU_ALIGNMENT, GPU_ALIGNMENT = 64, 256
"""Bytes to whose multiples each buffer of the block begins: a cache line, and the widest register; on a GPU what
cudaMalloc keeps to."""


def workspaces(kernel: Kernel) -> list[Buffer]:
    """The intermediates and copies of a call, in the order in which they lie in the block."""
    return [b for n in kernel.main.buffers if (b := kernel.buffers[n]).scope == "workspace"]


def room(buffer: Buffer, alignment: int) -> int:
    """Bytes of the block that a buffer takes."""
    return -(-buffer.elements * buffer.dtype.bytes // alignment) * alignment


def workspace_bytes(kernel: Kernel, alignment: int) -> int:
    """Bytes of the block, as an exported header declares them."""
    return sum(room(buffer, alignment) for buffer in workspaces(kernel))
