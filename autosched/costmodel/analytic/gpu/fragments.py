"""What it costs a worker of a GPU to load its fragments from shared memory: bytes that threads of a warp share, and
cycles in which no calls are issued. Part of `gpu_clock`.

Constants are round figures of `mma.sync`, WMMA and `fma` at 4096³ on an H200 (f16, s8, tf32, f32): some 100 rows were
in view when they were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps.gpu.operands.fragment_loads import AHEAD
from autosched.tiling.steps.gpu.operands.slice_copies import ASYNC, BULK

FLOAT_SHARE = {"ahead": 0.84, "in turn": 0.72}
"""Of the rate of float multiply-adds on CUDA cores that a product with registers of its own for all three reaches:
cuBLAS's f32 product ran at 51 of 67 TFLOP/s, a loop of nothing else at 47, ours at 46 and 40."""
SWIZZLED_SHARE = 0.9  # of it where threads turn addresses to swizzled rows between them
WIDE_SHARE = 0.25  # of a warp's 512 bytes that 16-byte loads of the same address take of the banks: one turn of four
START_CYCLES = {False: 160.0, True: 120.0}
"""Of a slice at whose start nothing is loaded yet, with copies started in front of the loads, or by the engine."""
LATE_CYCLES = 700.0
"""Of a slice whose copies threads start between the calls on the one before it, with no stage between."""
OPAQUE_CYCLES = 160.0  # of a depth unit whose opaque fragments are loaded just before their calls
AHEAD_SHARE = 1.06  # of a slice's cycles where loads and copies stand between the calls

Column = npt.NDArray[np.float64]


def lanes_share(
    intrinsic: Intrinsic, pair: Sequence[NestAxis], own: Sequence[NestAxis], along: Sequence[Column], warp: int
) -> Column:
    """The part of the bytes that the threads of a warp load of an operand, each its own fragment, which shared memory
    delivers: threads that lie side by side along an axis that the operand does not have read the same. `along`: threads
    of a block along each axis of the pair, the last fastest. `warp`: threads of a warp."""
    one = np.ones_like(along[0]) if along else np.ones(1)
    if intrinsic.scope != "thread" or not own:
        return one
    left, different = np.full_like(one, float(warp)), one
    for axis, count in zip(reversed(pair), reversed(along), strict=True):
        here = np.minimum(count, left)
        different = different * np.where(axis in own, here, 1.0)
        left = np.maximum(left / here, 1.0)
    return np.maximum(different / warp, WIDE_SHARE)


def calls_share(intrinsic: Intrinsic, fragments: Column, swizzle: Column) -> Column:
    """Of the rate of an instruction that a product reaches."""
    if intrinsic.scope != "thread" or not intrinsic.accumulator.dtype.is_float:
        return np.ones_like(fragments)
    reached = np.where(fragments == AHEAD, FLOAT_SHARE["ahead"], FLOAT_SHARE["in turn"])
    return reached * np.where(swizzle > 0, SWIZZLED_SHARE, 1.0)


def unhidden(
    intrinsic: Intrinsic, fragments: Column, copy: Column, stages: Column, slices: Column, units: Column
) -> Column:
    """Cycles of all slices in which a block that has its core to itself waits: for fragments that are loaded in turn
    with the calls, or for slices that come late for those ahead of them."""
    if intrinsic.scope != "warp":
        return np.zeros_like(slices)
    opaque = any(o.opaque is not None for o in intrinsic.inputs)
    start = np.where(copy == BULK, START_CYCLES[True], START_CYCLES[False])
    waits = slices * start + units * (OPAQUE_CYCLES if opaque else 0.0)
    late = np.where((copy == ASYNC) & (stages == 2), slices * LATE_CYCLES, 0.0)
    return np.where(fragments == AHEAD, late, waits)


def beside_calls(fragments: Column, share: float) -> Column:
    """How much longer a slice takes where workers start its copies: `share` where loads take turns with the calls."""
    return np.where(fragments == AHEAD, min(AHEAD_SHARE, share), share)
