"""What a program must do at least: operations, bytes in and out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from autosched.ir.program import Program
from autosched.ir.work import operations


@dataclass(frozen=True)
class Work:
    """`operations`: two a multiply-add, padding not counted. Bytes: every input read once, every output written."""

    operations: float
    bytes_in: int
    bytes_out: int


def work_of(program: Program) -> Work:
    """The least work of a program without symbolic sizes."""
    sizes = {n: t.dtype.bits * prod(t.extents) // 8 for n, t in program.tensors.items()}
    read = sum(sizes[n] for n in program.inputs if n in sizes)
    return Work(operations(program), read, sum(sizes[n] for n in program.outputs))
