"""What bodies of tile loops keep for themselves, and how many bytes that is."""

from __future__ import annotations

from autosched.ir.nodes import Tensor
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.plan import Plan, TensorPart, TileLoopsPart


def kept_inside(plan: Plan) -> dict[str, Tensor]:
    """What the bodies of a plan's tile loops keep for themselves, sums aside that never leave registers."""
    passing = {p.nest.stage.assign.tensor for p in plan.parts if isinstance(p, TensorPart) and not p.keep}
    loops = [p for p in plan.parts if isinstance(p, TileLoopsPart)]
    inside = {name for p in loops for name in p.stages}
    touched = {w.tensor for p in loops for w in p.windows.values()}
    for stage in plan.program.stages:
        if stage.name not in inside:
            touched |= {stage.assign.tensor, *(r.tensor for r in all_reads(stage))}
    own = {n: t for n, t in plan.program.tensors.items() if t.intermediate and n in touched}
    found = {n: t for n, t in own.items() if n not in passing}
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            found |= kept_inside(part.member)
    return found


def tensor_bytes(tensor: Tensor) -> int:
    size = tensor.dtype.bytes
    for n in tensor.extents:
        size *= n
    return size
