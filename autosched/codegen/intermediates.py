"""What a kernel keeps between stages, and where: intermediates in memory, and tiles of them in a cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from autosched.codegen.cuda.grids import grids
from autosched.codegen.tree.kernel import For, Kernel
from autosched.codegen.tree.workspace import CPU_ALIGNMENT, GPU_ALIGNMENT, workspace_bytes
from autosched.ir.nodes import Tensor
from autosched.ir.program import Program
from autosched.logic import free_vars
from autosched.tiling.plans.plan import Plan, TileLoopsPart


@dataclass(frozen=True)
class Kept:
    """An intermediate of tile loops: its shape in one iteration, and its bytes."""

    tensor: str
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return f"{self.tensor} {'x'.join(map(str, self.shape)) or '1'}"


def working_bytes(kernel: Kernel) -> int:
    """Bytes that a call works in beside the program's tensors, as the exported header has them."""
    return workspace_bytes(kernel, GPU_ALIGNMENT if starts_grids(kernel) else CPU_ALIGNMENT)


def launches(kernel: Kernel) -> int:
    """How often a call starts work on the device: once on a CPU, once for each grid of blocks on a GPU."""
    return len(grids(kernel.main)) if starts_grids(kernel) else 1


def starts_grids(kernel: Kernel) -> bool:
    """Whether a call starts grids of blocks on a GPU."""
    return any(isinstance(s, For) and s.kind.startswith("block") for s in kernel.statements)


def kept_in_tiles(plan: Plan) -> list[Kept]:
    """The intermediates that bodies of tile loops keep, for themselves or for the next iteration, the largest first."""
    found: list[Kept] = []
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            inside = kept_in_tiles(part.member)
            deeper = {k.tensor for k in inside}  # loops inside keep these; the body around only names them
            own = (t for t in part.member.program.tensors.values() if t.intermediate and t.name not in deeper)
            found += map(_kept, (*own, *_handed_on(plan.program, part)))
            found += inside
    return sorted(found, key=lambda k: -k.bytes)


def _handed_on(program: Program, part: TileLoopsPart) -> Iterator[Tensor]:
    """Intermediates of which each iteration has all: it takes them from the one before."""
    for window in part.windows.values():
        tensor = program.tensors[window.tensor]
        if tensor.intermediate and not any(free_vars(i) for i in window.start) and tensor.name in program.written:
            yield tensor


def _kept(tensor: Tensor) -> Kept:
    return Kept(tensor.name, tensor.extents, -(-prod(tensor.extents) * tensor.dtype.bits // 8))


def whole_bytes(program: Program) -> int:
    """Bytes of a program's intermediates as it is written."""
    return sum(-(-prod(t.extents) * t.dtype.bits // 8) for t in program.tensors.values() if t.intermediate)
