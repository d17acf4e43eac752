"""What a study minimises, as the clock sees it: seconds, joules, or joules times seconds.

Energy of a row is first-order: the bytes behind each of the clock's memory terms (seconds times the level's bandwidth)
at the level's joules a byte, and static power for the row's time. Operations and what is read of scratchpads cost the
same in every row, so they are left out: they do not change the order of energies, and in `edp` they are added to all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from autosched.costmodel.clock import Terms, clock
from autosched.ir.work import operations
from autosched.machine.target import Memory, Target
from autosched.tiling.plan import Plan

OBJECTIVES = ("latency", "energy", "edp")
LEVELS = {"l2": "L2", "l3": "L3", "shared": "shared", "dram": "DRAM"}
"""The clock's terms that stand for bytes of a level; `memory` is the outermost one."""

Columns = Mapping[str, npt.NDArray[np.int64]]


def objective_clock(objective: str) -> Callable[[Plan, Columns], Terms]:
    """The clock with `total` in the objective's unit: seconds, joules or joule-seconds."""
    if objective == "latency":
        return clock

    def costs(plan: Plan, values: Columns) -> Terms:
        terms = clock(plan, values)
        joules = energy_of(plan, terms)
        return terms | {"total": joules * terms["total"] if objective == "edp" else joules}

    return costs


def energy_of(plan: Plan, terms: Terms) -> npt.NDArray[np.float64]:
    """Joules per row, to first order."""
    target = plan.target
    per_operation = min(target.energy.values(), default=0.0)
    joules = (target.static_watts or 0.0) * terms["total"] + per_operation * operations(plan.program)
    for name, seconds in terms.items():
        level = _level(name, target)
        if level is not None and level.joules_per_byte and level.bandwidth_bytes_per_s:
            joules = joules + seconds * level.bandwidth_bytes_per_s * level.joules_per_byte
    return np.asarray(joules, np.float64)


def _level(term: str, target: Target) -> Memory | None:
    if term == "memory":
        return target.memories[-1]
    return next((m for m in target.memories if m.name == LEVELS.get(term)), None)
