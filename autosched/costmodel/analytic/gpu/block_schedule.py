"""What rows say of one thread block of a tensor part on a GPU, as float64 columns of shape (rows,)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.gpu_traffic import Column, Columns, column_of
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.space.values import rows_of
from autosched.tiling.steps import StepNames, gpu_pair
from autosched.tiling.steps.gpu.block_tile import workers_name
from autosched.tiling.steps.gpu.split_k import CLUSTER, STREAM

GROUP_OPERATIONS = 2.4
"""For each element of a group's sum, with its factor: tensor cores wait meanwhile, as workers do this at the same time
(measured on an H200: fp8 products of 4096 rows with scales of blocks, 73 us of 254; `docs/experiments/hopper.md`)."""


@dataclass(frozen=True)
class BlockSchedule:
    """Decisions and counts of each row. What a nest does not decide has the value that changes nothing."""

    workers_along: tuple[Column, ...]  # workers of a block along each axis of the pair, the last fastest
    workers: Column  # of a block
    accumulators: Column  # calls of a worker for one depth unit
    output_blocks: Column  # blocks that cover the output once
    blocks: Column  # that are launched, each with its share of the reduction
    at_once: Column  # blocks that fit on one core
    tiles: Column  # of the output, one for each cluster of blocks
    resident: Column  # clusters that run at once
    cluster: Column  # the kind of cluster (`grid_order.cluster_kinds`), 0: none
    cluster_blocks: Column
    shares: Column  # blocks that add up one sum
    steps: Column  # depth units that a block computes
    slice_units: Column  # depth units of one slice
    unroll: Column
    stages: Column
    copy: Column  # of slices: SYNC, ASYNC or BULK
    vector: Column  # bytes that a thread copies at once, 0: one element
    swizzle: Column  # bytes of a swizzled span, 0: none
    fragments: Column  # when a worker loads its fragments (`fragment_loads`)
    promote: Column  # slices between two promotions of the accumulators, 0: none
    added: float  # operations of lanes to promote one accumulator
    epilogue: Column  # how results leave registers
    warps: Column  # of a block, producers included
    warp_specialized: npt.NDArray[np.bool_]  # whether producer warps fetch the slices
    persistent: npt.NDArray[np.bool_]
    cluster_reduction: npt.NDArray[np.bool_]  # whether the blocks of a cluster add up their shares
    second_grid: npt.NDArray[np.bool_]  # whether a second grid adds them up

    @staticmethod
    def of(nest: Nest, names: StepNames, v: Columns, *, least: bool = False) -> BlockSchedule:
        """Read from columns of the plan's space; with `least`, without `epilogue` and `persistent`, which are 0."""
        output_blocks = column_of(v, names("blocks"))
        one, zero = np.ones_like(output_blocks), np.zeros_like(output_blocks)

        def column(name: str, default: Column) -> Column:
            return column_or(nest, names, v, name, default)

        along = tuple(column_of(v, workers_name(nest, names, a)) for a in gpu_pair(nest))
        workers: Column = prod(along, start=one)
        split, slices = column("split", one), column("slices", one)
        cluster_blocks = column("cluster_blocks", one)
        tiles, resident = column("tiles", output_blocks), column("resident", output_blocks)
        stream = split == STREAM
        shares = split_shares(split, slices)
        cluster_reduction = (column("gather", zero) == CLUSTER) & (shares > 1)
        return BlockSchedule(
            workers_along=along,
            workers=workers,
            accumulators=column_of(v, names("accumulators")),
            output_blocks=output_blocks,
            blocks=np.where(stream, resident * cluster_blocks, output_blocks * shares),
            at_once=column_of(v, names("blocks_at_once")),
            tiles=tiles,
            resident=resident,
            cluster=column("cluster", zero),
            cluster_blocks=cluster_blocks,
            shares=shares,
            steps=float(prod(a.units for a in nest.reduction)) * np.where(stream, tiles / resident, 1.0 / shares),
            slice_units=column_of(v, names.block(nest.depth)) if nest.depth else one,
            unroll=column("unroll", one),
            stages=column("stages", one),
            copy=column("copy", zero),
            vector=column("vector", zero),
            swizzle=column("swizzle", zero),
            fragments=column("fragments", zero),
            promote=column("promote", zero),
            added=_added(nest),
            epilogue=column_of(v, names("epilogue")) if names("epilogue") in v and not least else zero,
            warps=np.maximum(column_of(v, names("warps")), 1.0) if names("warps") in v else workers,
            warp_specialized=column("roles", zero) > 0,
            persistent=((zero if least else column("persistent", zero)) > 0) & ~stream,
            cluster_reduction=cluster_reduction,
            second_grid=(shares > 1) & ~cluster_reduction,
        )


def _added(nest: Nest) -> float:
    """Operations of lanes to empty one tile of partial sums."""
    elements = float(nest.intrinsic.accumulator.elements)
    return elements if nest.groups is None else elements * GROUP_OPERATIONS


@dataclass(frozen=True)
class InputTile:
    """What a block reads of one input, in bytes for one depth unit."""

    operand: Operand
    fragment_bytes: float  # of one call
    axes: tuple[NestAxis, ...]  # of the pair, those along which the input varies
    worker_bytes: Column  # of one worker's register tile
    block_bytes: Column
    source: Column  # 0: straight from memory; else shared memory (`operand_sources`)

    @staticmethod
    def of(nest: Nest, names: StepNames, v: Columns, operand: Operand) -> InputTile:
        """Read from columns of the plan's space."""
        size = operand.elements * operand.dtype.bits / 8
        axes = tuple(a for a in gpu_pair(nest) if a in nest.operand_axes(operand.name))
        start = np.full(rows_of(v), size)
        return InputTile(
            operand,
            size,
            axes,
            worker_bytes=prod((column_of(v, names.register(a)) for a in axes), start=start),
            block_bytes=prod((column_of(v, names(f"tile_{a.name}")) for a in axes), start=start),
            source=column_or(nest, names, v, f"stage_{operand.name}", np.zeros_like(start)),
        )


def column_or(nest: Nest, names: StepNames, v: Columns, name: str, default: Column) -> Column:
    """A decision or count of a nest with a depth; `default` where the nest has it not."""
    return column_of(v, names(name)) if nest.depth is not None and names(name) in v else default


def split_shares(split: Column, slices: Column) -> Column:
    """Blocks that add up one sum; with stream-K those at both ends of a tile, where it has so many slices."""
    return np.where(split == STREAM, np.minimum(slices, 2.0), np.maximum(split, 1.0))
