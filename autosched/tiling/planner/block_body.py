"""The body of tile loops that a block of a GPU's grid computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autosched.ir.program import Program
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.planner.nests import MOST_PLANS
from autosched.tiling.planner.structure import NEAR
from autosched.tiling.plans.handed_on import handed_on
from autosched.tiling.plans.plan import Plan, TileLoopsPart

BLOCK_SCOPES = ("thread", "warp")
"""Whose instructions the parts of a block may use side by side: lanes are counted within a warp."""


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


def handing_on_first(every: Sequence[Plan], cycles: Mapping[int, float]) -> list[Plan]:
    """Plans of a body, the fastest first, but of those about as fast as it the ones first whose products hand on the
    most in registers."""
    near = [p for p in every if cycles[id(p)] <= NEAR * cycles[id(every[0])]]
    most = sorted(near, key=lambda p: -len(handed_on(p.program, p.parts)))
    return [*most, *(p for p in every if not any(p is n for n in near))]


def _in_blocks(plan: Plan) -> bool:
    return any(isinstance(p, TileLoopsPart) and p.grid for p in plan.parts)


def _opaque(intrinsic: Intrinsic) -> bool:
    return any(o.opaque is not None for o in intrinsic.operands.values())
