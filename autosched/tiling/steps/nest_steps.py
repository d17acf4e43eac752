"""The steps of a tensorized nest, in order: the whole space of one mapping on one kind of target."""

from __future__ import annotations

from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.outputs import OutputAccess
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Step
from autosched.tiling.steps.common.register_tile import register_tile
from autosched.tiling.steps.cpu.cache_block import cache_block
from autosched.tiling.steps.cpu.edges import edges
from autosched.tiling.steps.cpu.loop_order import loop_order
from autosched.tiling.steps.cpu.outer_tile_order import outer_tile_order
from autosched.tiling.steps.cpu.pack import pack
from autosched.tiling.steps.cpu.parallel import parallel
from autosched.tiling.steps.cpu.prefetch import prefetch
from autosched.tiling.steps.cpu.shared_loads import shared_loads
from autosched.tiling.steps.cpu.skip_guarded import skip
from autosched.tiling.steps.cpu.unroll import unroll
from autosched.tiling.steps.gpu.block_tile import is_gpu
from autosched.tiling.steps.gpu.gpu_steps import gpu_steps
from autosched.tiling.steps.spatial.scratchpads import is_spatial, spatial_steps


def nest_steps(
    nest: Nest,
    target: Target,
    threads: int,
    names: StepNames,
    outputs: tuple[OutputAccess, ...] = (),
    keep: bool = True,
) -> list[Step]:
    """The steps of a tensorized nest, in order: the space of one mapping on this kind of target. `outputs`: the tensors
    that it writes; `keep`: whether its own result is among them."""
    if is_gpu(target):
        return gpu_steps(nest, target, outputs, names)
    if is_spatial(target):
        return spatial_steps(nest, target, names)
    steps = [
        register_tile(nest, target, names),
        cache_block(nest, target, names),
        loop_order(nest, names),
        pack(nest, target, names),
        unroll(nest, target, names),
        shared_loads(nest, target, names),
        edges(nest, names),
        outer_tile_order(nest, names),
    ]
    ahead = prefetch(nest, target, threads, names, keep)
    return [*steps, skip(nest, names, tuple(steps)), parallel(nest, threads, names), ahead]
