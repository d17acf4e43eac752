"""What the units of a GPU reach: calls of an instruction, bytes of each level of memory, and TMA (the unit of Hopper
GPUs that copies boxes of tensors into shared memory). Cycles of one core (SM) unless stated otherwise.

A target's own figures come first. Shares that it does not state are named here, each with its source.
"""

from __future__ import annotations

import numpy as np

from autosched.costmodel.analytic.gpu.gpu_traffic import Column
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic

MMA_SYNC_SHARE = 0.65  # of the tensor peak that mma.sync reaches on Hopper (arXiv 2402.13499)
WGMMA_SHARE = {8: 0.21, 16: 0.38, 32: 0.63, 64: 0.95, 128: 0.96, 256: 0.96}
"""Of the tensor peak that wgmma reaches by its n, both operands in shared memory (arXiv 2402.13499, table 9)."""
L2_PORT_BYTES = 64.0  # a cycle that one SM takes from L2 at most (DeepGEMM's performance model)
DRAM_SHARE = 0.9  # of the datasheet's bandwidth that copies reach: 4.3 of 4.8 TB/s on an H200
BOX_ROW_CYCLES, BOX_ROW_BYTE_CYCLES, MOST_BOX_ROW_CYCLES = 0.4, 0.6 / 16, 2.0
"""Of TMA for each row of a box: a constant, and so much for each byte, up to 128 bytes. On an H200 rows of 16, 32 and
64 bytes came at 16, 20 and 31 bytes a cycle (chosen with 200 measured schedules of a 4096³ bf16 product in view, as the
cycles of copies and slices in `code_constants`)."""


def issue_rate(intrinsic: Intrinsic, target: Target) -> float:
    """Issues a cycle and core: the target's own figure, else from its class's operations, else the stated timing."""
    if intrinsic.name in target.rates:
        return target.rates[intrinsic.name]
    inputs = intrinsic.inputs[0].dtype.name
    if intrinsic.scope in ("warp", "warpgroup"):
        kind, share = f"ops.tensor.{inputs}", tensor_share(intrinsic)
        exact = f"{kind}.{intrinsic.accumulator.dtype.name}"  # where the type of the sum makes a difference
        kind = exact if exact in target.rates else kind
    else:
        # A portable instruction is arithmetic in its accumulator's type; a dot product has a unit of its own.
        kind, share = f"ops.{intrinsic.accumulator.dtype.name if intrinsic.portable else inputs}", 1.0
    if kind in target.rates:
        return share * target.rates[kind] / intrinsic.operations
    return 1.0 / intrinsic.timing.get("interval", 1.0)


def tensor_share(intrinsic: Intrinsic) -> float:
    """The share of the tensor peak that a warp's or a warpgroup's instruction can reach."""
    if intrinsic.scope == "warp":
        return MMA_SYNC_SHARE
    n = intrinsic.accumulator.shape[-1]
    return float(np.interp(np.log2(n), np.log2(list(WGMMA_SHARE)), list(WGMMA_SHARE.values())))


def memory_speed(target: Target, name: str) -> float:
    """Bytes a cycle of a level: of one core where it belongs to a core, else of the device."""
    for m in target.memories:
        if m.name == name and m.bandwidth_bytes_per_s:
            return m.bandwidth_bytes_per_s / target.clock_hz
    return float("inf")


def latency_cycles(target: Target) -> dict[str, float]:
    """Cycles from a load to its data, by level; 0 where the target states none."""
    return {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}


def l2_port(target: Target) -> float:
    """Bytes a cycle that one core takes from L2 where all cores do."""
    return min(L2_PORT_BYTES, memory_speed(target, "L2") / target.cores)


def tma_cycles(row_bytes: Column) -> Column:
    """Cycles of TMA for one byte, in boxes whose rows have `row_bytes` bytes."""
    row = np.maximum(
        np.minimum(BOX_ROW_CYCLES + BOX_ROW_BYTE_CYCLES * row_bytes, MOST_BOX_ROW_CYCLES), row_bytes / L2_PORT_BYTES
    )
    return np.asarray(row / row_bytes)
