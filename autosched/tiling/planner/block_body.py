"""The body of tile loops that a block of a GPU's grid computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.ir.program import Program
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.planner.nests import MOST_PLANS
from autosched.tiling.planner.rank import memory_cycles, plan_cycles
from autosched.tiling.plans.find_warp_rows import warp_rows
from autosched.tiling.plans.plan import Plan, TileLoopsPart

BLOCK_SCOPES = ("thread", "warp", "warpgroup")
"""Whose instructions the parts of a block may use side by side: lanes are counted within a warp."""

HOLDING = 2.0
"""Times the cycles of the fastest body, up to which one comes first that holds more in registers: cycles count what is
computed, and not what goes through shared memory, nor barriers (a round figure)."""


def of_block(body: Program) -> Program:
    """The body, of which nothing is prepared before: windows that come again are read anew."""
    return replace(body, tensors={n: replace(t, const=False) for n, t in body.tensors.items()})


def block_intrinsics(intrinsics: Sequence[Intrinsic]) -> list[Intrinsic]:
    """The instructions for the parts of a block: of those of warps, where there are such, those whose fragments are
    known, since these are filled from shared memory as it lies."""
    fitting = [i for i in intrinsics if i.scope in BLOCK_SCOPES]
    known = [i for i in fitting if not _opaque(i)]
    return known if any(i.scope == "warp" for i in known) else fitting


def with_chains(best: Sequence[Plan], every: Sequence[Plan]) -> list[Plan]:
    """The best plans, of which the last makes room for the first whose blocks compute chains where none is among them:
    what launches and memory cost is not in the cycles that plans are ranked by."""
    found = next((p for p in every if _in_blocks(p)), None)
    if found is None or any(map(_in_blocks, best)):
        return list(best)
    return [*best[: MOST_PLANS - 1], found]


def holding_first(every: Sequence[TileLoopsPart]) -> list[TileLoopsPart]:
    """Bodies of the same loops, the fastest first, but of those about as fast as it, or faster than memory brings what
    an iteration reads, the ones first that hold the most in registers of the warps that share their rows."""
    cycles = [plan_cycles(part.member) for part in every]
    moved = memory_cycles(every[0].member.program, every[0].member.target)
    near = [part for part, mine in zip(every, cycles, strict=True) if mine <= max(HOLDING * min(cycles), moved)]

    def held(part: TileLoopsPart) -> tuple[int, int]:
        rows = warp_rows(part)
        return (0, 0) if rows is None else (sum(len(p.taken) for p in rows.products), len(rows.held))

    most = sorted(near, key=held, reverse=True)
    return [*most, *(part for part in every if not any(part is n for n in near))]


def _in_blocks(plan: Plan) -> bool:
    return any(isinstance(p, TileLoopsPart) and p.grid for p in plan.parts)


def _opaque(intrinsic: Intrinsic) -> bool:
    return any(o.opaque is not None for o in intrinsic.operands.values())
