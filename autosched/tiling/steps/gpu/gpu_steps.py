"""The steps of a tensorized nest on a GPU, in order."""

from __future__ import annotations

from autosched.logic import Const
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.outputs import OutputAccess
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Step
from autosched.tiling.steps.gpu.block_results import gpu_epilogue
from autosched.tiling.steps.gpu.block_tile import gpu_pair, gpu_tile
from autosched.tiling.steps.gpu.grid_order import gpu_grid
from autosched.tiling.steps.gpu.occupancy import gpu_limits
from autosched.tiling.steps.gpu.operands.fragment_loads import gpu_fragments
from autosched.tiling.steps.gpu.operands.operand_sources import gpu_stage, staged
from autosched.tiling.steps.gpu.operands.shared_layout import gpu_layout
from autosched.tiling.steps.gpu.operands.slice_copies import gpu_copy
from autosched.tiling.steps.gpu.promotion import gpu_promote
from autosched.tiling.steps.gpu.split_k import gpu_split
from autosched.tiling.steps.gpu.warp_roles import gpu_roles


def gpu_steps(nest: Nest, target: Target, outputs: tuple[OutputAccess, ...], names: StepNames) -> list[Step]:
    """The whole space of one mapping on a GPU; `outputs` is what its part writes."""
    pair = gpu_pair(nest)
    steps = [gpu_tile(nest, target, names), gpu_stage(nest, target, names)]
    if nest.depth is not None:
        through = staged(nest, names)
        steps.append(gpu_layout(nest, pair, through, names))
        steps += [gpu_copy(nest, target, pair, through, names), gpu_roles(nest, target, names)]
        steps += [gpu_grid(nest, target, pair, names), gpu_split(nest, target, names), gpu_promote(nest, names)]
    else:
        steps.append(Step("gpu roles", (), (), {names("producer_warps"): Const(0), names("promoted"): Const(0)}))
    steps.append(gpu_fragments(nest, target, names))
    steps.append(gpu_epilogue(nest, target, pair, outputs, names))
    return [*steps, gpu_limits(nest, target, names)]
