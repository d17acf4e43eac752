"""The analytic clock of tile loops on a GPU: each part of the body takes what it would take as a kernel on one core,
without its launch; a barrier follows. Blocks of the grid go on at once on all cores, and a few on each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.gpu_clock import LAUNCH_SECONDS
from autosched.machine.target import Target
from autosched.tiling.plans.handed_on import handed_on
from autosched.tiling.plans.plan import Part, Plan, TensorPart, TileLoopsPart
from autosched.tiling.steps.gpu.tile_loops import MEMORY, place_of, tensor_bytes

BARRIER_CYCLES = 40.0  # of a block's threads that meet after a part (a round figure)

MOVING = ("shared", "l2", "dram", "store")
"""Terms of bytes."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Terms = dict[str, npt.NDArray[np.float64]]


def one_core(target: Target) -> Target:
    """A core with its share of what all cores share."""
    memories = tuple(
        replace(m, bandwidth_bytes_per_s=m.bandwidth_bytes_per_s / target.cores)
        if m.shared_by == "device" and m.bandwidth_bytes_per_s
        else m
        for m in target.memories
    )
    return replace(target, cores=1, memories=memories)


def within_block(terms: Terms, target: Target) -> Terms:
    """Terms of a kernel as those of a part of a block: a barrier in place of the launch."""
    launch = next((name for name in ("launch", "overhead") if name in terms), None)
    if launch is None:
        return terms
    barrier = np.full_like(terms["total"], BARRIER_CYCLES / target.clock_hz)
    return terms | {launch: barrier, "total": terms["total"] - terms[launch] + barrier}


def grid_terms(part: TileLoopsPart, v: Columns, target: Target) -> Terms:
    """What tile loops take beside what is inside: the launch, and intermediates that go through memory (written and
    read once an iteration; they stay in the cache that all cores share)."""
    threads = v[part.names("threads")].astype(np.float64)
    none = np.zeros_like(threads)
    if not part.grid:
        return {"launch": none, "l2": none, "total": none}
    shared = next((m.bandwidth_bytes_per_s for m in target.memories if m.name == "L2"), None)
    moved = 2.0 * part.trips * v[part.names("block_memory")].astype(np.float64) / (shared or np.inf)
    launch = np.full_like(threads, LAUNCH_SECONDS)
    return {"launch": launch, "l2": moved, "total": launch + moved}


@dataclass(frozen=True)
class InRegisters:
    """A tensor that a product leaves in its fragments, or takes (`taken`) from those of another, in rows that say so:
    `place` is the decision. `left` is the share of the product's bytes that still moves."""

    place: str
    left: float
    taken: bool

    @staticmethod
    def of(part: Part, plan: Plan, grid: TileLoopsPart) -> tuple[InRegisters, ...]:
        """Those of one part of the body of a block."""
        if not isinstance(part, TensorPart):
            return ()
        found = []
        for handed in handed_on(plan.program, plan.parts):
            if part in (handed.maker, handed.taker):
                place, own = grid.names(place_of(handed.tensor).name), tensor_bytes(plan.program.tensors[handed.tensor])
                names = {part.nest.mapping.operands[o.name].tensor for o in part.nest.intrinsic.inputs}
                names |= {handed.tensor} if part is handed.maker else {part.nest.stage.assign.tensor}
                every = sum(tensor_bytes(plan.program.tensors[n]) for n in names)
                found.append(InRegisters(place, 1.0 - own / every, part is handed.taker))
        return tuple(found)

    def apply(self, terms: Terms, v: Columns, target: Target) -> Terms:
        """Terms without the bytes that stay in registers, and without the barrier in front of what takes them."""
        if self.place not in v:
            return terms
        held = v[self.place] > MEMORY
        moves = np.where(held, self.left, 1.0)
        found = terms | {name: terms[name] * moves for name in MOVING if name in terms}
        total = terms["total"] * moves
        if self.taken and "launch" in terms:
            barrier = np.where(held, np.minimum(BARRIER_CYCLES / target.clock_hz, terms["launch"]), 0.0)
            found["launch"] = terms["launch"] - barrier
            total = np.maximum(total - barrier, 0.0)
        return found | {"total": total}
