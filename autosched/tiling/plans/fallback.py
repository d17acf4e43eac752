"""What stands by for a mapping with conditions: the same stages without any."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from autosched.ir.nodes import Assume, Stage
from autosched.ir.program import Program
from autosched.tensorize import match_types
from autosched.tiling.analysis.dependence import Dependences
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.plan import Fallback, Plan
from autosched.tiling.plans.scalar_parts import scalar_part
from autosched.tiling.plans.step_names import StepNames

WIDTH_BYTES = 32
"""Elements that a scalar fallback computes together, where its stage vectorises, in bytes: what every vector machine
has."""


def scalar_fallback(
    program: Program, stages: Sequence[Stage], dependences: Dependences, threads: int, policy: FloatPolicy
) -> Fallback:
    """The stages as scalar code, one after the other."""
    parts, values = [], {}
    for stage in stages:
        part = scalar_part(program, stage, StepNames(f"{stage.name}."), dependences, policy)
        parts.append(part)
        width = max(1, WIDTH_BYTES // stage.assign.value.dtype.bytes)
        values[part.names("vector")] = width if part.vector or part.across else 1
        values[part.names("threads")] = threads if part.parallel else 1
    return Fallback(tuple(parts), values)


def checkable(program: Program, mapping: match_types.Mapping) -> bool:
    """Whether every condition of the mapping can be checked at run time: a range of integers of one parameter, whose
    values at entry matter."""
    return all(c.assume is not None and _ranges(program, c.assume) for c in mapping.conditions)


def _ranges(program: Program, condition: Assume) -> bool:
    asked = condition.of_range and condition.subject in program.inputs
    return asked and program.tensors[condition.subject].dtype.is_integer


def check_elements(program: Program, conditions: Sequence[Assume]) -> int:
    """Elements that the checks of one call look at; const data were looked at before."""
    return sum(prod(program.tensors[c.subject].extents) for c in conditions if not program.known(c.subject))


def exchangeable(plan: Plan, other: Plan) -> bool:
    """Whether one kernel can hold both plans and decide at its start which of them runs: what is checked is there from
    the start, and a tensor of both that is prepared means the same in both."""
    if any(g.subject in plan.program.written for g in plan.guards):
        return False
    ours, theirs = plan.program, other.program
    for name in ours.tensors.keys() & theirs.tensors.keys():
        if ours.tensors[name] != theirs.tensors[name] or (name in ours.prepared) != (name in theirs.prepared):
            return False
        if name in ours.prepared and _written(ours, name) != _written(theirs, name):
            return False
    return True


def _written(program: Program, tensor: str) -> list[tuple[object, ...]]:
    return [(s.axes, s.guards, s.assign, s.init) for s in program.stages if s.assign.tensor == tensor]
