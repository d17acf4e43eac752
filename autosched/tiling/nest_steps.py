"""The steps of a tensorized nest, in order: the whole space of one mapping on one kind of target."""

from __future__ import annotations

from autosched.machine.target import Target
from autosched.tiling.nest import Nest
from autosched.tiling.step import Step
from autosched.tiling.steps import (
    StepNames,
    cache_block,
    edges,
    gpu_limits,
    gpu_stage,
    gpu_tile,
    is_gpu,
    lines,
    loop_order,
    pack,
    parallel,
    prefetch,
    register_tile,
    shared_loads,
    skip,
    unroll,
)


def nest_steps(nest: Nest, target: Target, threads: int, names: StepNames) -> list[Step]:
    """The steps of a tensorized nest, in order: the whole space of one mapping on this kind of target."""
    if is_gpu(target):
        return [gpu_tile(nest, target, names), gpu_stage(nest, target, names), gpu_limits(nest, target, names)]
    steps = [
        register_tile(nest, target, names),
        cache_block(nest, names),
        loop_order(nest, names),
        pack(nest, target, names),
        unroll(nest, names),
        shared_loads(nest, target, names),
        edges(nest, names),
        lines(nest, names),
    ]
    ahead = prefetch(nest, target, threads, names)
    return [*steps, skip(nest, names, tuple(steps)), parallel(nest, threads, names), ahead]
