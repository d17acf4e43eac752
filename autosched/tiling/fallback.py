"""What stands by for a mapping with conditions: the same stages without any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from autosched.ir.program import Assume, Program, Stage
from autosched.tensorize import match_types
from autosched.tiling.dependence import Dependences
from autosched.tiling.plan import Fallback, Plan, TensorPart
from autosched.tiling.scalar_parts import scalar_part
from autosched.tiling.steps import StepNames

WIDTH_BYTES = 32
"""Elements that a scalar fallback computes together, where its stage vectorises, in bytes: what every vector machine
has."""


def scalar_fallback(program: Program, stages: Sequence[Stage], dependences: Dependences, threads: int) -> Fallback:
    """The stages as scalar code, one after the other."""
    parts, values = [], {}
    for stage in stages:
        part = scalar_part(program, stage, StepNames(f"{stage.name}."), dependences)
        parts.append(part)
        values[part.names("vector")] = max(1, WIDTH_BYTES // stage.assign.value.dtype.bytes) if part.vector else 1
        values[part.names("threads")] = threads if part.parallel else 1
    return Fallback(tuple(parts), values)


def checkable(program: Program, mapping: match_types.Mapping) -> bool:
    """Whether every condition of the mapping can be checked at run time: a range of integers of one parameter."""
    return all(c.assume is not None and _ranges(program, c.assume) for c in mapping.conditions)


def _ranges(program: Program, condition: Assume) -> bool:
    tensor = program.tensors.get(condition.subject)
    return tensor is not None and not tensor.intermediate and tensor.dtype.is_integer


def check_elements(program: Program, conditions: Sequence[Assume]) -> int:
    """Elements that the checks of one call look at; const data were looked at before."""
    return sum(prod(program.tensors[c.subject].extents) for c in conditions if not program.known(c.subject))


def on_instructions(plan: Plan, unconditional: Plan, values: Mapping[str, int]) -> Plan:
    """The plan with an unconditional plan's parts, laid out by `values`, as what stands by for the same stages."""
    spare = {p.nest.stage.name: p for p in unconditional.tensor_parts}
    parts = []
    for part in plan.parts:
        if isinstance(part, TensorPart) and part.fallback is not None:
            other = spare.get(part.nest.stage.name)
            same = other is not None and [f.stage.name for f in other.epilogue] == [f.stage.name for f in part.epilogue]
            if other is not None and same:
                part = replace(part, fallback=Fallback((other,), dict(values)))
        parts.append(part)
    return replace(plan, parts=tuple(parts))


__all__ = ["check_elements", "checkable", "on_instructions", "scalar_fallback"]
