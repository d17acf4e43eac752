"""How many cycles a mapping or a plan needs at least: what ranks the plans of a program against each other.

By the intrinsics' stated timing, not by measured rates: the plans of a study must be the same when it continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.plans.asked_once import looked_at
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.fallback import check_elements
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.on_the_way import BLOCK
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Part,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.plans.scalar_parts import is_constant
from autosched.tiling.steps import gpu_pair, interleave, is_gpu, vectorises
from autosched.tiling.steps.common.computed import loaded
from autosched.tiling.steps.common.layout import panel_elements, runs, tensor_elements
from autosched.tiling.steps.cpu.register_transpose import MOST_ROWS, store_cycles, transposed_row
from autosched.tiling.steps.gpu.operands.operand_paths import aligned_bytes
from autosched.tiling.steps.gpu.operands.tma_boxes import no_bulk_copy

SCALAR_MARGIN = 1.25
"""How many times fewer cycles than any nest the scalar path must promise to be laid out beside them, or to be ranked
before them: a sum's vectors may have to gather what they add, and they compute each term anew."""
VECTOR_CYCLES = 1 / 64
"""Cycles of a byte of an element of a scalar stage that is vectorised."""
COMPUTED_CYCLES = 0.5
"""Cycles to compute a register of an operand on the way, which a stage would store and the nest load again."""
SLICE_CYCLES = 1 / 64
"""Cycles of an element that a block computes on the way: a stage takes as many to compute it and to store it, each."""
BLOCK_ELEMENTS = 256
"""Of the axes that an operand does not have, in a block that computes it."""
MOST_UNITS = 32
"""Of the axes that an operand does not have, in one register tile: an operand is computed anew for each in the load."""
TEAM_CYCLES = 1 / 32
"""Cycles of an element of a stage that a GPU's threads compute: four instructions, on 128 lanes of a core."""
ADDING_CYCLES = TEAM_CYCLES / 2
"""Cycles to add up the sum of a group that lies in registers: what else an element of a stage takes is to load and to
store it."""
CHECK_CYCLES = 1 / 32
"""Cycles to look at one element in a run-time check."""
COPY_CYCLES = 1.0
"""Cycles to copy one element into a panel, or to store one lane by itself."""
SHARED_BYTES = 128.0
"""Bytes of shared memory that an instruction reads in a cycle: all banks of an NVIDIA core, one word each."""
THREAD_COPIES = 16.0
"""Copies, each as wide as rows are aligned, that a core's threads make in a cycle: eight instructions on 128 lanes."""
PORT_BYTES = 64.0
"""Bytes that a core takes in a cycle from the cache that all cores share (DeepGEMM's performance model)."""
BESIDE = 0.1
"""Share of the cycles in which shared memory is read that add to those of the instructions, which run beside them."""
BLOCK_TILES, BLOCK_SUMS = (1, 2, 3, 4), 192 * 256
"""Tiles of a block along one axis, and sums that registers of a block hold."""
GROUP_CYCLES = 0.15
"""Cycles to copy one element of a tensor that is interleaved."""


@dataclass(frozen=True)
class Ranking:
    """What mappings are ranked by: cycles on so many `cores`, each of which computes whole tiles of results; `blocks`:
    in the best blocks of tiles, whose operands come from a cache that all cores share."""

    cores: int = 1
    blocks: bool = False


ONE_CORE = Ranking()


@of_nest
def least_cycles(nest: Nest, ranking: Ranking = ONE_CORE) -> float:
    """Cycles that no schedule of the nest avoids: issuing, copying what no load can fetch, storing lanes one by one.
    On a GPU, see `issue_cycles`."""
    cycles = issue_cycles(nest, ranking)
    if nest.groups is not None:
        cycles += ADDING_CYCLES * _points(nest.groups.adding.axes)
    if nest.intrinsic.shared_memory:
        cycles += sum(_computing(nest, o) for o in nest.computed)
        return cycles + sum(_by_threads(nest, o.name) for o in nest.intrinsic.inputs)
    for operand in nest.intrinsic.inputs:
        if operand.name in nest.computed:
            cycles += _computing(nest, operand.name)
            if nest.intrinsic.scope == "warp":  # lanes bring what the block computed to registers
                cycles += COPY_CYCLES * panel_elements(nest, operand.name)
            continue
        known = nest.mapping.program.known(nest.mapping.operands[operand.name].tensor)
        if not vectorises(nest, operand.name) and not known:
            way = interleave(nest, operand.name)
            panel = COPY_CYCLES * panel_elements(nest, operand.name)
            few = runs(nest, operand.name)
            shuffled = panel if few is None else few * prod(a.units for a in nest.axes)
            if nest.intrinsic.matrices is not None:
                shuffled = panel if few is None else GROUP_CYCLES * panel_elements(nest, operand.name)
            copied = panel if way is None else GROUP_CYCLES * tensor_elements(nest, operand.name)
            cycles += min(panel, copied, shuffled)
    asked = [c.assume for c in nest.mapping.conditions if c.assume is not None]
    return cycles + storing_cycles(nest) + CHECK_CYCLES * check_elements(nest.mapping.program, asked)


def storing_cycles(nest: Nest) -> float:
    """Cycles to store lanes one by one, where no vector store can."""
    if vectorises(nest, nest.intrinsic.accumulator.name):
        return 0.0
    row, lanes = transposed_row(nest), float(nest.intrinsic.accumulator.elements)
    each = lanes if row is None else float(store_cycles(np.array([min(row.units, MOST_ROWS)]), lanes)[0])
    return COPY_CYCLES * each / lanes * prod(a.units * a.unit for a in nest.spatial)


def _computing(nest: Nest, operand: str) -> float:
    """Cycles to compute an operand on the way: once in packing, in the load once for each register tile, and in a block
    of a GPU once for each tile of what the operand does not depend on."""
    mine = nest.operand_axes(operand)
    if nest.computed[operand].place == BLOCK:
        others = prod(a.extent for a in nest.spatial if a not in mine)
        return SLICE_CYCLES * panel_elements(nest, operand) * -(-others // BLOCK_ELEMENTS)
    registers = panel_elements(nest, operand) / prod(a.unit for a in mine)
    others = prod(a.units for a in nest.spatial if a not in mine)
    return COMPUTED_CYCLES * registers * (-(-others // MOST_UNITS) if loaded(nest, operand) else 1)


def _by_threads(nest: Nest, operand: str) -> float:
    """Cycles of threads that copy slices of an operand for an instruction which reads them in shared memory: none where
    an engine can fetch them."""
    elements = panel_elements(nest, operand) if no_bulk_copy(nest, operand) else 0
    size = nest.intrinsic.operands[operand].dtype.bits / 8
    return elements * size / min(SHARED_BYTES, THREAD_COPIES * (aligned_bytes(nest, operand) or size))


def issue_cycles(nest: Nest, ranking: Ranking = ONE_CORE) -> float:
    """Cycles to issue the instructions alone, or to read their operands where they stay in shared memory. Of several
    cores those count that wait for the core with the most tiles, or blocks of them."""
    intrinsic, cores = nest.intrinsic, ranking.cores
    tiles = prod(a.units for a in nest.spatial)
    interval = intrinsic.timing.get("interval", 1.0)
    if intrinsic.shared_memory:
        read = sum(o.elements * o.dtype.bits / 8 for o in intrinsic.inputs)
        interval = max(interval, read / SHARED_BYTES)
        if ranking.blocks:
            return _block_cycles(nest, cores, interval + BESIDE * read / SHARED_BYTES)
    return prod(a.units for a in nest.axes) * nest.issue_time * interval * (-(-tiles // cores) * cores / tiles)


def _block_cycles(nest: Nest, cores: int, interval: float) -> float:
    """Cycles of all cores until the one with the most blocks is done, in blocks of the best shape that registers hold:
    its instructions, or bringing its operands from the cache."""
    pair, out = gpu_pair(nest), nest.intrinsic.accumulator
    steps = prod(a.units for a in nest.reduction)
    outside = prod(a.units for a in nest.spatial if a not in pair)
    sizes = [(nest.operand_axes(o.name), o.elements * o.dtype.bits / 8) for o in nest.intrinsic.inputs]
    best = float("inf")
    for shape in product(BLOCK_TILES, repeat=len(pair)):
        if prod(shape) * out.elements > BLOCK_SUMS and prod(shape) > 1:
            continue
        of = dict(zip([a.name for a in pair], shape, strict=True))
        blocks = outside * prod(-(-a.units // of[a.name]) for a in pair)
        fetched = sum(size * prod(of[a.name] for a in pair if a in axes) for axes, size in sizes) / PORT_BYTES
        best = min(best, -(-blocks // cores) * max(prod(shape) * interval, fetched) * steps)
    return best * cores


def rankings(target: Target) -> tuple[Ranking, ...]:
    """How mappings are ranked. A GPU runs few tiles on few cores, unless blocks share their sums: the fastest
    instruction, one with a tile for each core, and one whose blocks leave few cores idle are each worth a plan."""
    return (ONE_CORE, Ranking(target.cores), Ranking(target.cores, blocks=True)) if is_gpu(target) else (ONE_CORE,)


def memory_cycles(program: Program, target: Target) -> float:
    """Cycles of all a GPU's cores until memory has moved each parameter once: no plan takes fewer.
    0 on other targets, whose caches may hold the parameters, and where the target states no bandwidth."""
    main = target.memories[-1].bandwidth_bytes_per_s if is_gpu(target) and target.memories else None
    if not main:
        return 0.0
    tensors = [program.tensors[n] for n in program.parameters if n in program.tensors]
    moved = sum(prod(t.extents) * t.dtype.bits / 8 for t in tensors)
    return moved / main * target.clock_hz * target.cores


def mostly_by_lanes(plan: Plan) -> bool:
    """Whether lanes of warps compute the part that takes the most cycles. Where memory takes longer than that, an
    instruction gains nothing."""
    return isinstance(max(plan.parts, key=lambda p: part_cycles(p, plan)), WarpCooperativePart)


def plan_cycles(plan: Plan, lanes_store: bool = False) -> float:
    """Cycles that no schedule of the plan avoids, vectors at their widest: for ranking plans of one program, adapted or
    not, against each other. `lanes_store`: lanes of warps store side by side, so nests of instructions of whole warps
    are not behind those of threads for that."""
    cycles = sum(part_cycles(part, plan) for part in plan.parts)
    warps = [t.nest for t in plan.tensor_parts if t.nest.intrinsic.scope == "warp"] if lanes_store else []
    return cycles - sum(map(storing_cycles, warps))


def part_cycles(part: Part, plan: Plan) -> float:
    """Those of one of its parts."""
    match part:
        case TensorPart(nest):
            return least_cycles(nest)
        case ScalarPart():
            return 0.0 if part.prepared else _doubted(part)
        case FusedLoopsPart(_, members):
            return sum(map(_doubted, members))
        case WarpCooperativePart():
            return sum(_points(m.axes) * TEAM_CYCLES for m in part.members)
        case LiteralPart(_, names):
            stages = map(plan.program.stage, names)
            return sum(_points(s.axes) for s in stages if not s.seldom)
        case TileLoopsPart():
            return part.trips * plan_cycles(part.member)


def _doubted(part: ScalarPart) -> float:
    """Its cycles; of a sum so many more as scalar code is to promise fewer than an instruction."""
    return scalar_cycles(part) * (SCALAR_MARGIN if part.stage.reduction else 1)


def scalar_cycles(part: ScalarPart) -> float:
    """Cycles of a scalar stage, its vectors at their widest. Rows that ask the data once are taken not to compute."""
    each = VECTOR_CYCLES * _widest(part.stage) if part.vector or part.across else 1.0
    return _points(looked_at(part.stage).axes) * each


def _widest(stage: Stage) -> float:
    """Bytes of the widest element that a stage reads or writes; floats of fewer bits than f32 are computed in it."""
    dtypes = {stage.target.dtype, *(r.dtype for r in stage.reads)}
    return max(max(4.0, d.bits / 8) if d.is_float else d.bits / 8 for d in dtypes)


def _points(axes: Sequence[Axis]) -> float:
    return float(prod(a.extent if is_constant(a) else 1 for a in axes))
