"""A kernel's main function cut into grids: each nest of block loops is one launch, all else runs in one thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from autosched.backends import CUDA
from autosched.codegen.analysis.held_registers import THREADS_OF
from autosched.codegen.cuda.launch import MOST_BLOCKS, Dim3
from autosched.codegen.tree.kernel import (
    WORKERS,
    Assign,
    Comment,
    For,
    Function,
    GuardedDispatch,
    Stmt,
    StoreFence,
    WarpSpecialize,
    statements,
)
from autosched.errors import UsageError
from autosched.logic import Const

WARP, WARPGROUP = CUDA.warp, CUDA.warpgroup
ROW_THREADS = 128
"""Threads of a block whose iterations are single threads or warps."""


@dataclass(frozen=True)
class CudaGrid:
    """One launch. `blocks` are the loops over blocks, outermost first; `checks` are buffers of which one, other than 0,
    chooses the `fallback` (this grid is then part of it, or not run). `rows`: blocks are single threads or warps, and
    share blocks of `ROW_THREADS`."""

    blocks: tuple[For, ...]
    body: tuple[Stmt, ...]
    checks: tuple[str, ...] = ()
    fallback: bool = False
    note: str = ""

    @property
    def rows(self) -> bool:
        """Whether one thread or warp does all of a block's work: then many of them make one block of the machine's."""
        return not any(isinstance(s, For) and s.kind in WORKERS for s in statements(self.body))

    @property
    def row_lanes(self) -> int:
        """Threads that do the work of one of `rows`: a warp where it computes as many elements at once."""
        lanes = (s.lane for s in statements(self.body) if isinstance(s, Assign))
        return WARP if self.rows and any(lane is not None and lane.width % WARP == 0 for lane in lanes) else 1

    @property
    def registers(self) -> int:
        """What a thread may take; 0: as many as the compiler likes."""
        return self.blocks[0].registers if self.blocks else 0

    @property
    def counts(self) -> dict[str, int]:
        """Iterations of each loop over blocks."""
        return {loop.var: trips(loop) for loop in self.blocks}

    @property
    def folded(self) -> bool:
        """Whether block numbers are taken apart from `blockIdx.x` alone: where a dimension would be too large."""
        return self.rows or any(self._along(axis) > most for axis, most in zip("xyz", MOST_BLOCKS, strict=True))

    def _along(self, axis: str) -> int:
        return prod(trips(loop) for loop in self.blocks if loop.kind == f"block.{axis}")

    @property
    def cluster(self) -> int:
        """Blocks of a cluster."""
        return max((trips(s) for s in statements(self.body) if isinstance(s, For) and s.kind == "cluster"), default=1)

    @property
    def roles(self) -> bool:
        """Whether a producer works beside the workers."""
        return any(isinstance(s, WarpSpecialize) for s in statements(self.body))

    @property
    def block_threads(self) -> int:
        """Threads of one block: its workers and their producer."""
        return self.worker_threads + (WARPGROUP if self.roles else 0)

    @property
    def worker_threads(self) -> int:
        """Threads that the workers of one block are."""
        found = [
            trips(s) * THREADS_OF[s.kind] for s in statements(self.body) if isinstance(s, For) and s.kind in THREADS_OF
        ]
        return max(found, default=ROW_THREADS if self.blocks else self.row_lanes)

    @property
    def shape(self) -> Dim3:
        """Blocks of the launch. UsageError where no grid is large enough."""
        total = prod(self.counts.values())
        if total * self.cluster > MOST_BLOCKS[0] and self.folded:  # rows too are numbered in 32 bits
            raise UsageError(f"{total:,} blocks are more than a grid has", hint="choose larger tiles")
        if self.rows:
            total = -(-total * self.row_lanes // self.block_threads)
        if self.folded:
            return total * self.cluster, 1, 1
        return self._along("x") * self.cluster, self._along("y"), self._along("z")


def grids(function: Function) -> tuple[CudaGrid, ...]:
    """The launches of a function, in order."""
    return tuple(_grids(function.body, (), False))


def _grids(body: tuple[Stmt, ...], checks: tuple[str, ...], fallback: bool) -> list[CudaGrid]:
    found: list[CudaGrid] = []
    alone: list[Stmt] = []

    def flush() -> None:
        if any(not isinstance(s, Comment | StoreFence) for s in alone):
            found.append(CudaGrid((), tuple(alone), checks, fallback))
        alone.clear()

    for stmt in body:
        match stmt:
            case For(kind=kind) if kind.startswith("block."):
                flush()
                found.append(_grid(stmt, checks, fallback))
            case GuardedDispatch() if not checks:
                flush()
                found += _grids(stmt.body, stmt.checks, False)
                found += _grids(stmt.fallback, stmt.checks, True)
            case For(kind="serial" | "parallel") if (shared := _shared_out(stmt)) is not None:
                flush()
                found.append(CudaGrid((shared,), shared.body, checks, fallback))
            case _:
                alone.append(stmt)
    flush()
    return found


def _shared_out(loop: For) -> For | None:
    """A loop whose iterations are independent, as blocks."""
    return replace(loop, kind="block.x") if loop.kind == "parallel" else None


def _grid(loop: For, checks: tuple[str, ...], fallback: bool) -> CudaGrid:
    blocks = [loop]
    body = loop.body
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind.startswith("block."):
        blocks.append(body[0])
        body = body[0].body
    return CudaGrid(tuple(blocks), body, checks, fallback, loop.note)


def trips(loop: For) -> int:
    """Iterations of a loop with constant bounds (AssertionError for others, which bound loops never are)."""
    assert isinstance(loop.lower, Const)
    assert isinstance(loop.upper, Const)
    return max(0, -(-(loop.upper.value - loop.lower.value) // loop.step))


def first(loop: For) -> int:
    """A bound loop's variable at its first iteration."""
    assert isinstance(loop.lower, Const)
    return loop.lower.value
