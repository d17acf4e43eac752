"""The analytic clock of a nest on a spatial accelerator: the array against the bus, and copies that nothing hides.

The array takes its issues' cycles. Every input is copied as often as the loops outside its residency run, results are
stored once; all of it shares the bus to main memory. With two slots a copy runs beside the array's work, with one the
array waits for it. A slot is filled and then used, and comes round no sooner: small blocks wait for memory's latency.
Copies are made in the program's order, so one that waits for its slot holds up those behind it. (The counting of copies
is Timeloop's: temporal loops outside a buffer's level, without those that do not move the operand; see
docs/simulator.md for the event model beside it.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""Seconds: the array's, the bus's, of copies that the array waits for, and of waiting for first bytes."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Copies:
    """Of an input: how many copies, seconds of each on the bus, and whether the array waits for every one."""

    count: Column
    each: Column
    single: npt.NDArray[np.bool_]


def spatial_tensor(nest: Nest, names: StepNames, v: Columns, target: Target) -> dict[str, Column]:
    """Seconds per row of a tensor part laid out by the spatial steps."""
    cycle, main = 1.0 / target.clock_hz, target.memories[-1]
    speed = main.bandwidth_bytes_per_s or target.clock_hz
    first = main.latency_s or 0.0
    rate = target.issues(nest.intrinsic)
    n = len(v[names("order")])
    compute = np.full(n, prod(a.units for a in nest.axes) / rate * cycle)
    memory, exposed, waits, rounds = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    made = [_copies_of(nest, names, o.name, v, speed) for o in nest.intrinsic.inputs]
    for place, own in enumerate(made):
        together = _together(made, place)
        memory += own.count * own.each
        exposed += np.where(own.single, own.count * own.each, _shown(made, place, compute))
        waits += np.where(together, 0.0, np.where(own.single, own.count, 1.0))
        filled = sum((np.where(p.count == own.count, p.each, 0.0) for p in made), start=np.zeros(n))
        rounds = np.maximum(rounds, np.where(own.single, 0.0, (compute + own.count * (filled + first)) / 2))
    out = nest.stage.assign.tensor
    stored = prod(a.extent for a in nest.spatial) * nest.mapping.program.tensors[out].dtype.bits / 8 / speed
    times = stores(nest, names, v)
    single = v[slots_name(names, nest.intrinsic.accumulator.name)] == 1
    memory, exposed = memory + stored, exposed + np.where(single, stored, stored / times)
    waits += np.where(single, times, 1.0)
    rounds = np.maximum(rounds, np.where(single, 0.0, (compute + stored + times * first) / 2))
    hidden = np.maximum(compute + exposed, memory)
    latency = np.maximum(waits * first, rounds - hidden)
    total = hidden + latency
    return {"compute": compute, "memory": memory, "exposed": exposed, "latency": latency, "total": total}


def _copies_of(nest: Nest, names: StepNames, operand: str, v: Columns, speed: float) -> _Copies:
    slots = v[slots_name(names, operand)]
    each = cut_off(nest, names, operand, v) * v[names(f"bytes_{operand}")] / slots / speed
    return _Copies(copies(nest, names, operand, v), each, (slots == 1) & (v[resident_name(names, operand)] > 0))


def _together(made: Sequence[_Copies], place: int) -> npt.NDArray[np.bool_]:
    """Whether an input is copied right behind one that waits for its slot: both wait for memory at once."""
    beside = [p.single & (p.count == made[place].count) for p in made[:place]]
    return np.any(beside, axis=0) if beside else np.zeros(len(made[place].count), np.bool_)


def _shown(made: Sequence[_Copies], place: int, compute: Column) -> Column:
    """Seconds of an input's copies that do not hide, though it has two slots: of the first; of those that come behind
    one that waits for its slot; and, since all keep the program's order, of what is longer than the array's work on
    the blocks of a loop further in that were copied before."""
    own = made[place]
    shown = np.maximum(own.each, np.where(_together(made, place), own.each * own.count, 0.0))
    for other in made:
        ahead = np.where(other.single, 1, 2) * compute / other.count
        shown = np.maximum(shown, np.where(other.single & (other.count < own.count), own.each * other.count, 0.0))
        shown = np.maximum(shown, np.where(other.count > own.count, (own.each - ahead) * own.count, 0.0))
    return shown


def copies(nest: Nest, names: StepNames, operand: str, v: Columns) -> Column:
    """How often an input is copied: the trips of the loops outside its residency."""
    level, count = v[resident_name(names, operand)], _outside(nest)
    result = np.full(len(level), count)
    for k, nested in enumerate(spatial_orders(nest)):
        here = v[names("order")] == k
        for place, axis in enumerate(nested):
            result *= np.where(here & (level > place), v[trips_name(names, axis)], 1)
    return result


def cut_off(nest: Nest, names: StepNames, operand: str, v: Columns) -> Column:
    """What share of whole blocks is copied of an input: the last block along an axis may be smaller."""
    level, own = v[resident_name(names, operand)], nest.operand_axes(operand)
    result = np.ones(len(level))
    for k, nested in enumerate(spatial_orders(nest)):
        here = v[names("order")] == k
        for place, axis in enumerate(nested):
            if axis in own:
                whole = v[trips_name(names, axis)] * v[names.block(axis)]
                result *= np.where(here & (level > place), axis.units / whole, 1.0)
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
