"""Joules of a kernel, to first order: operations and bytes, each times the target's figure for it.

Every arithmetic operation costs what its class costs; every byte that passes a level of memory costs what that level
says, once on its way in or out of it (`Memory.joules_per_byte`); and the static power is drawn all the time. Control,
wires within a core and clocks are in those figures or nowhere (after Horowitz, ISSCC 2014; Accelergy and Timeloop count
alike).
"""

from __future__ import annotations

from collections import defaultdict

from autosched.codegen.kernel import Kernel
from autosched.device.simulator.cpu_model import play_cpu, threads_of
from autosched.device.simulator.gpu_model import moved
from autosched.device.simulator.spatial_model import memory_of, on_array, play_spatial
from autosched.device.simulator.walk import Facts, Issue
from autosched.errors import UsageError
from autosched.machine.target import Target
from autosched.tiling.scheme import scheme_of


def energy(kernel: Kernel, parts: list[Facts], target: Target, seconds: float) -> dict[str, float]:
    """Joules by cause (`operations`, each level's name, `static`), and `total`. UsageError naming what the target does
    not say."""
    totals: dict[str, float] = defaultdict(float)
    for found in parts:
        for issue in found.issues:
            totals["operations"] += issue.runs * issue.intrinsic.operations * operation_joules(issue, target)
        for level, size in bytes_by_level(kernel, found, target).items():
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


def bytes_by_level(kernel: Kernel, found: Facts, target: Target) -> dict[str, float]:
    """Bytes that pass each level of memory in one run of a statement."""
    match scheme_of(target):
        case "gpu":
            return moved(kernel, found, target)
        case "spatial" if on_array(kernel, found):
            a = play_spatial(kernel, found, target).totals
            pads = {what: memory_of(target, what) for what in ("inputs", "accumulators")}
            sizes: dict[str, float] = defaultdict(float)
            for what, size in (("inputs", a.scratch + a.loaded), ("accumulators", 2 * a.accumulated + a.stored)):
                if (pad := pads[what]) is not None:
                    sizes[pad.name] += size
            sizes[target.memories[-1].name] += a.loaded + a.stored
            return dict(sizes)
        case _:
            return play_cpu(kernel, found, target, threads_of(found)).moved


def _missing(target: Target, what: str) -> UsageError:
    hint = "state it in the target's YAML, as `energy: {value: 6 pJ/B, source: …}`; `gemmini` has all of them"
    return UsageError(f"{target.name} does not say the {what}", hint=hint)
