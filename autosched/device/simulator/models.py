"""The model of a target's kind of machine."""

from __future__ import annotations

from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.cpu.cpu_model import cpu_estimate
from autosched.device.simulator.estimate import Estimate
from autosched.device.simulator.gpu.gpu_model import gpu_estimate
from autosched.device.simulator.spatial.spatial_model import spatial_estimate
from autosched.device.simulator.walk.facts import Facts
from autosched.machine.target import Target
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.units import NO_UNITS, AcceleratorUnits


def estimate(kernel: Kernel, parts: list[Facts], target: Target, units: AcceleratorUnits = NO_UNITS) -> Estimate:
    """Of a kernel, `parts` being the facts of its top-level statements. RefusedError where a limit of the target is
    broken, TooManyEventsError where it would take too long."""
    match scheme_of(target):
        case "gpu":
            return gpu_estimate(kernel, parts, target)
        case "spatial":
            return spatial_estimate(kernel, parts, target, units)
        case _:
            return cpu_estimate(kernel, parts, target)
