"""Joules of a kernel, to first order: operations and bytes, each times the target's figure for it.

Every arithmetic operation costs what its class costs; every byte that passes a level of memory costs what that level
says, once on its way in or out of it (`Memory.joules_per_byte`); and the static power is drawn all the time. Control,
wires within a core and clocks are in those figures or nowhere (after Horowitz, ISSCC 2014; Accelergy and Timeloop count
alike).
"""

from __future__ import annotations

from collections import defaultdict

from autosched.device.simulator.estimate import Estimate
from autosched.device.simulator.walk.facts import Facts, Issue
from autosched.errors import UsageError
from autosched.machine.target import Target


def energy(parts: list[Facts], found: Estimate, target: Target, seconds: float) -> dict[str, float]:
    """Joules by cause (`operations`, each level's name, `static`), and `total`, of statements that a model looked at.
    UsageError naming what the target does not say."""
    totals: dict[str, float] = defaultdict(float)
    for part, moved in zip(parts, found.moved, strict=True):
        for issue in part.issues:
            totals["operations"] += issue.runs * issue.intrinsic.operations * operation_joules(issue, target)
        for level, size in moved.items():
            if size:
                totals[level] += size * byte_joules(level, target)
    totals["static"] = (target.static_watts or 0.0) * seconds
    totals["total"] = sum(totals.values())
    return dict(totals)


def operation_joules(issue: Issue, target: Target) -> float:
    """Of one operation of an intrinsic: by its own name, else by its class as rates are."""
    intrinsic = issue.intrinsic
    operand, result = intrinsic.inputs[0].dtype.name, intrinsic.accumulator.dtype.name
    names = [intrinsic.name]
    names += [f"ops.tensor.{operand}"] if intrinsic.scope in ("warp", "warpgroup") else []
    names += [f"ops.{operand}", f"ops.{result}"]
    for name in names:
        if name in target.energy:
            return target.energy[name]
    raise _missing(target, f"units.energy of {names[1]}")


def byte_joules(level: str, target: Target) -> float:
    """Of a byte that passes a level."""
    known = {m.name: m.joules_per_byte for m in target.memories}
    value = known.get(level)
    if value is None:
        raise _missing(target, f"energy of the memory {level}")
    return value


def _missing(target: Target, what: str) -> UsageError:
    hint = "state it in the target's YAML, as `energy: {value: 6 pJ/B, source: …}`; `gemmini` has all of them"
    return UsageError(f"{target.name} does not say the {what}", hint=hint)
