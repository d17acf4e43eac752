"""The analytic clock of a nest on a spatial accelerator: the array against the bus, and copies that nothing hides.

The array takes its issues' cycles. Every input is copied as often as the loops outside its residency run, results are
stored once; all of it shares the bus to main memory. With two slots a copy runs beside the array's work, with one the
array waits for it. (The counting of copies is Timeloop's: temporal loops outside a buffer's level, without those that
do not move the operand; see docs/simulator.md for the event model beside it.)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.machine.target import Target
from autosched.tiling.nest import Nest
from autosched.tiling.steps.names import StepNames
from autosched.tiling.steps.spatial import (
    kept_level,
    resident_name,
    slots_name,
    spatial_loops,
    spatial_orders,
    trips_name,
)

TERMS = ("compute", "memory", "exposed", "latency")
"""Seconds: the array's, the bus's, of copies that the array waits for, and of the first bytes of such copies."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


def spatial_tensor(nest: Nest, names: StepNames, v: Columns, target: Target) -> dict[str, Column]:
    """Seconds per row of a tensor part laid out by the spatial steps."""
    cycle, main = 1.0 / target.clock_hz, target.memories[-1]
    speed = main.bandwidth_bytes_per_s or target.clock_hz
    intrinsic = nest.intrinsic
    rate = target.issues(intrinsic)
    n = len(v[names("order")])
    compute = np.full(n, prod(a.units for a in nest.axes) / rate * cycle)
    memory, exposed, waits = np.zeros(n), np.zeros(n), np.zeros(n)
    for o in intrinsic.inputs:
        slots = v[slots_name(names, o.name)]
        count = copies(nest, names, o.name, v)
        seconds = count * v[names(f"bytes_{o.name}")] / slots / speed
        alone = (slots == 1) & (v[resident_name(names, o.name)] > 0)
        memory += seconds
        exposed += np.where(alone, seconds, seconds / count)  # the first copy has nothing to hide behind
        waits += np.where(alone, count, 1.0)
    out = nest.stage.assign.tensor
    stored = prod(a.extent for a in nest.spatial) * nest.mapping.program.tensors[out].dtype.bits / 8 / speed
    times = stores(nest, names, v)
    alone = v[slots_name(names, intrinsic.accumulator.name)] == 1
    memory, exposed = memory + stored, exposed + np.where(alone, stored, stored / times)
    waits += np.where(alone, times, 1.0)
    latency = waits * (main.latency_s or 0.0)
    total = np.maximum(compute + exposed, memory) + latency
    return {"compute": compute, "memory": memory, "exposed": exposed, "latency": latency, "total": total}


def copies(nest: Nest, names: StepNames, operand: str, v: Columns) -> Column:
    """How often an input is copied: the trips of the loops outside its residency."""
    level, count = v[resident_name(names, operand)], _outside(nest)
    result = np.full(len(level), count)
    for k, nested in enumerate(spatial_orders(nest)):
        here = v[names("order")] == k
        for place, axis in enumerate(nested):
            result *= np.where(here & (level > place), v[trips_name(names, axis)], 1)
    return result


def stores(nest: Nest, names: StepNames, v: Columns) -> Column:
    """How often a set of accumulators is stored."""
    result = np.full(len(v[names("order")]), _outside(nest))
    for k, nested in enumerate(spatial_orders(nest)):
        here = v[names("order")] == k
        for axis in nested[: kept_level(nest, nested)]:
            result *= np.where(here, v[trips_name(names, axis)], 1)
    return result


def _outside(nest: Nest) -> float:
    return float(prod(a.units for a in nest.spatial if a not in spatial_loops(nest)))
