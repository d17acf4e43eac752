"""Rows: scalar stages that run one after the other inside loops they share, where dependences allow it.

The shared loops are those of the text. What the stages leave behind for each other within a row is then read back from
a cache; and one thread does all of a row, so nobody waits between stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.analysis.dependence import together
from autosched.tiling.analysis.nontemporal import asked_ahead, exceeds_caches, nontemporal_store
from autosched.tiling.plans.plan import FusedLoopsPart, ScalarPart
from autosched.tiling.plans.scalar_parts import is_constant
from autosched.tiling.plans.step_names import StepNames


def shared_axes(program: Program, stages: Sequence[Stage]) -> tuple[str, ...]:
    """The loops around all of these stages over which their iterations are independent, all stages taken together;
    each stage keeps a loop of its own. Empty where that is not so."""
    common: list[str] = []
    for axes in zip(*(s.axes for s in stages), strict=False):
        if any(a != axes[0] for a in axes) or not is_constant(axes[0]):
            break
        common.append(axes[0].name)
    common = common[: min(len(s.axes) for s in stages) - 1]
    found = together(program, [s.name for s in stages], tuple(common)) if common else ()
    free = []
    for axis in found:
        if axis.kind != "independent":
            break
        free.append(axis.axis)
    return tuple(free)


def fused_loops_parts(
    program: Program, parts: Sequence[ScalarPart], target: Target
) -> list[ScalarPart | FusedLoopsPart]:
    """The parts, in order, with runs of them that can share loops joined: each run as long as it can be."""
    result: list[ScalarPart | FusedLoopsPart] = []
    at = 0
    while at < len(parts):
        run = 1
        shared: tuple[str, ...] = ()
        for count in range(2, len(parts) - at + 1):
            members = parts[at : at + count]
            if any(not m.parallel or m.running or m.scheme != "cpu" for m in members):
                break
            found = shared_axes(program, [m.stage for m in members])
            if not found or any(m.order[: len(found)] != found for m in members):
                break
            run, shared = count, found
        if run == 1:
            result.append(parts[at])
        else:
            members = parts[at : at + run]
            names = members[0].names
            joined = tuple(_member(m, shared, names) for m in members)
            stages = [m.stage for m in joined]
            along = joined[0].across or joined[0].vector
            stream = nontemporal_store(program, stages, shared, target) if any(m.vector for m in joined) else None
            asked = asked_ahead(program, stages, along, shared, target)
            distant = any(exceeds_caches(program, r.tensor, target) for r in asked)
            result.append(FusedLoopsPart(shared, joined, names, stream, asked, distant))
        at += run
    return result


def _member(part: ScalarPart, shared: tuple[str, ...], names: StepNames) -> ScalarPart:
    """A stage as a member: its shared axes are neither vectorised nor run several at a time."""
    vector = None if part.vector in shared else part.vector
    return replace(part, names=names, vector=vector, rows=None, blocked=None, nontemporal=None)
