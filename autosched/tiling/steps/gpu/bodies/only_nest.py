"""A nest that is all that tile loops on a GPU have inside, where blocks share every loop: its own blocks are blocks of
the grid, and it decides as it would by itself, but for what its blocks would have to number themselves for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autosched.ir.nodes import Tensor
from autosched.logic import Const, Int, Var, minimum
from autosched.machine.target import Target
from autosched.tiling.plans.plan import TensorPart, TileLoop, TileLoopsPart
from autosched.tiling.step import Step
from autosched.tiling.steps.gpu.block_tile import is_block_loop
from autosched.tiling.steps.gpu.bodies.kept_tensors import kept_inside
from autosched.tiling.steps.gpu.operands.slice_copies import ASYNC, BULK, COPY, STAGE_COUNT, STAGES, SYNC
from autosched.tiling.steps.gpu.operands.window_boxes import no_box_of_window
from autosched.tiling.steps.gpu.warp_roles import PRODUCER, ROLES, TOGETHER


def only_nest(part: TileLoopsPart) -> TensorPart | None:
    """The nest, where the body is nothing else and keeps nothing, and no loop stands between it and the grid."""
    known, key = part.cache, "only nest"
    if key not in known:
        known[key] = _only_nest(part)
    found: TensorPart | None = known[key]
    return found


def _only_nest(part: TileLoopsPart) -> TensorPart | None:
    match part.member.parts:
        case (TensorPart(scheme="gpu") as nest,) if part.grid and all(map(of_blocks, part.loops)):
            return None if kept_inside(part.member) else nest
        case _:
            return None


def of_blocks(loop: TileLoop) -> bool:
    """Whether blocks of the grid share a loop."""
    return is_block_loop(loop.parallel, loop.axis.lower, loop.axis.upper)


def blocks_of(part: TileLoopsPart) -> int:
    """Blocks of the grid: the iterations of the parallel loops of constant length."""
    total = 1
    for loop in part.loops:
        if of_blocks(loop):
            total *= loop.last - loop.first + 1
    return total


def allowed_alone(
    part: TileLoopsPart, alone: TensorPart, tensors: Mapping[str, Tensor]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Values of decisions that such a nest may take and another within a block may not: as many stages as it would have
    by itself, and where its windows have boxes TMA and a producer. `tensors` are those of the program around."""
    nest = alone.nest
    yield alone.names(STAGE_COUNT.name), STAGES
    for operand in (o.name for o in nest.intrinsic.inputs):
        window = part.windows.get(nest.mapping.operands[operand].tensor)
        if no_box_of_window(nest, operand, window, tensors[window.tensor].extents if window else ()):
            return
    yield alone.names(COPY.name), (SYNC, ASYNC, BULK)
    yield alone.names(ROLES.name), (TOGETHER, PRODUCER)


def blocks_of_nest(part: TileLoopsPart, alone: TensorPart, target: Target) -> Step:
    """How many blocks there are. Derived: `block_memory` (none), `threads` (cores that have blocks) and `shares`."""
    blocks: Int = Var(alone.names("blocks")) * blocks_of(part)
    names = part.names
    derived: dict[str, Int] = {
        names("block_memory"): Const(0),
        names("threads"): minimum(blocks, target.cores),
        names("shares"): blocks,
    }
    return Step("tile loops", (), (), derived)
