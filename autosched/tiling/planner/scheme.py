"""Whose steps lay a nest out: those of a CPU, of a GPU, or of an accelerator with scratchpads."""

from __future__ import annotations

from autosched.machine.target import Target
from autosched.tiling.steps.gpu.block_tile import is_gpu
from autosched.tiling.steps.spatial.scratchpads import is_spatial


def scheme_of(target: Target) -> str:
    """`gpu` (blocks, warps), `spatial` (scratchpads, blocks of tiles) or `cpu` (threads, cache blocks)."""
    return "gpu" if is_gpu(target) else "spatial" if is_spatial(target) else "cpu"
