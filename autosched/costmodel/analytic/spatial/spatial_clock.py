"""The analytic clock on a spatial accelerator: the array against the bus, and copies that nothing hides.

The array takes its issues' cycles, or what the ports of the memories that it reads and sums into take for them. What
follows on each element keeps the accelerator's unit or the host busy beside it (`spatial_units`). Every input is copied
as often as the loops outside its residency run, results are stored once; all of it shares the bus to main memory. With
two slots a copy runs beside the array's work, with one the array waits for it. A slot is filled and then used, and
comes round no sooner: small blocks wait for memory's latency. Copies are made in the program's order, so one that waits
for its slot holds up those behind it. (The counting of copies is Timeloop's: temporal loops outside a buffer's level,
without those that do not move the operand; see docs/simulator.md for the event model beside it.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.spatial.spatial_units import (
    array_seconds,
    epilogue_seconds,
    loaded_states,
    on_units,
    read_beside,
    stage_seconds,
)
from autosched.ir.nodes import Stage
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import Plan, ScalarPart, TensorPart
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps.spatial.loops import (
    kept_level,
    resident_name,
    slots_name,
    spatial_loops,
    spatial_orders,
    trips_name,
)
from autosched.tiling.steps.spatial.states import loads_name

TERMS = ("compute", "scratchpad", "accumulators", "memory", "copies", "vector", "host", "exposed", "latency")
"""Seconds: the array's, of the ports that it reads and sums through, the bus's, of the unit that copies tiles in, of
what computes element by element on the accelerator and on the host; of copies that the array waits for, and of waiting
for first bytes. Where an operand is in a state of the array also `loads`: of the unit that loads states."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Copies:
    """Of an input: how many copies, seconds of each (on the bus, by the unit that makes it, whichever is longer), and
    whether the array waits for every one."""

    count: Column
    bus: Column
    unit: Column
    single: npt.NDArray[np.bool_]

    @property
    def each(self) -> Column:
        return np.maximum(self.bus, self.unit)


def spatial_tensor(part: TensorPart, v: Columns, plan: Plan) -> dict[str, Column]:
    """Seconds per row of a tensor part laid out by the spatial steps."""
    nest, names, target = part.nest, part.names, plan.target
    main = target.memories[-1]
    speed = main.bandwidth_bytes_per_s or target.clock_hz
    n = len(v[names("order")])
    beside = on_units(part, array_seconds(nest, target) | epilogue_seconds(part, plan))
    scratchpad, loads, waited_for = _loads(part, plan, v)
    scratchpad += beside["scratchpad"]
    compute = np.maximum(scratchpad, max(beside["compute"], beside["accumulators"]))
    compute = np.maximum(compute + waited_for, loads)
    memory, unit, exposed, waits, rounds = (np.zeros(n) for _ in range(5))
    first = (main.latency_s or 0.0) if (lag := _latency(part, plan)) is None else lag
    made = [_copies_of(part, plan, o.name, v, speed) for o in nest.intrinsic.inputs]
    for place, own in enumerate(made):
        together = _together(made, place)
        memory += own.count * own.bus
        unit += own.count * own.unit
        exposed += np.where(own.single, own.count * own.each, _shown(made, place, compute))
        waits += np.where(together, 0.0, np.where(own.single, own.count, 1.0))
        filled = sum((np.where(p.count == own.count, p.each, 0.0) for p in made), start=np.zeros(n))
        rounds = np.maximum(rounds, np.where(own.single, 0.0, (compute + own.count * (filled + first)) / 2))
    on_bus, by_unit = stored_seconds(part, plan)
    on_bus += read_beside(part) / speed
    stored = max(on_bus, by_unit, beside["vector"], beside["host"])
    times = stores(nest, names, v)
    single = v[slots_name(names, nest.intrinsic.accumulator.name)] == 1
    memory, exposed = memory + on_bus, exposed + np.where(single, stored, stored / times)
    waits += np.where(single, times, 1.0)
    rounds = np.maximum(rounds, np.where(single, 0.0, (compute + stored + times * first) / 2))
    ahead = _ahead(part, plan, made)
    copied = np.minimum(ahead.copies, ahead.idle)
    exposed = np.maximum(exposed - copied, 0.0)
    hidden = np.maximum.reduce([compute + exposed, memory - copied, unit - copied, np.full(n, stored)])
    waited = np.where(ahead.copies > 0, np.minimum(first, ahead.idle - copied), 0.0)
    latency = np.maximum(waits * first - waited, rounds - hidden)
    terms = {name: np.full(n, seconds) for name, seconds in beside.items()}
    terms |= {"loads": loads} if nest.intrinsic.held else {}
    return terms | {
        "scratchpad": scratchpad, "memory": memory, "copies": unit, "exposed": exposed,
        "latency": latency, "total": hidden + latency,
    }  # fmt: skip


def _loads(part: TensorPart, plan: Plan, v: Columns) -> tuple[Column, Column, Column]:
    """Of the loads of a part's states: seconds of the port that they read through, and of the unit that makes them, and
    those that the array waits for them. It waits for each where it has no room for the next."""
    n = len(v[part.names("order")])
    port, unit, waited = np.zeros(n), np.zeros(n), np.zeros(n)
    for state in loaded_states(part.nest, plan):
        count = v[loads_name(part.names, state.operand)]
        port += count * state.port
        unit += count * state.unit
        waited += state.there if state.ahead else count * state.there
    return port, unit, waited


@dataclass(frozen=True)
class _Ahead:
    """Seconds of a part's first copies that need not wait for the part before, and of the bus that this one leaves."""

    copies: Column
    idle: float


def _ahead(part: TensorPart, plan: Plan, made: Sequence[_Copies]) -> _Ahead:
    """What of a part runs below the one before: copies in the program's order, up to the first of what that one writes.
    By what the part before takes whatever its row, since the time of no part reads decisions of several."""
    none = _Ahead(np.zeros(len(made[0].count)) if made else np.zeros(1), 0.0)
    timed = [p for p in plan.parts if not (isinstance(p, ScalarPart) and p.prepared)]
    place = next((k for k, p in enumerate(timed) if p is part), 0)
    before = timed[place - 1] if place else None
    if not isinstance(before, TensorPart) or before.scheme != "spatial" or not made:
        return none
    setting = part.nest.intrinsic.configured
    if setting and setting != before.nest.intrinsic.configured:
        return none
    written = {before.nest.stage.assign.tensor, *(f.stage.assign.tensor for f in before.epilogue)}
    copies = np.zeros(len(made[0].count))
    for operand, own in zip(part.nest.intrinsic.inputs, made, strict=True):
        if part.nest.mapping.operands[operand.name].tensor in written:
            break
        copies = copies + own.each
    asked = on_units(before, array_seconds(before.nest, plan.target) | epilogue_seconds(before, plan))
    busy = max(asked[name] for name in ("compute", "scratchpad", "accumulators"))
    return _Ahead(copies, max(0.0, busy - least_on_bus(before, plan)))


def least_on_bus(part: TensorPart, plan: Plan) -> float:
    """Seconds of an accelerator's bus: each tile of the operands once, since no scratchpad keeps one from call to call,
    and the results."""
    nest, main = part.nest, plan.target.memories[-1]
    axes = {o.name: nest.operand_axes(o.name) for o in nest.intrinsic.inputs}
    tiles = sum(prod(a.units for a in axes[o.name]) * o.elements * o.dtype.bits / 8 for o in nest.intrinsic.inputs)
    return tiles / (main.bandwidth_bytes_per_s or plan.target.clock_hz) + stored_seconds(part, plan)[0]


def spatial_stages(stages: Iterable[Stage], plan: Plan, n: int) -> dict[str, Column]:
    """Seconds per row of stages that the array has no part in."""
    asked = stage_seconds(stages, plan)
    terms = {name: np.zeros(n) for name in TERMS}
    terms |= {name: np.full(n, asked[name]) for name in ("vector", "host")} | {"memory": np.full(n, asked["bus"])}
    return terms | {"total": np.full(n, max(asked.values()))}


def stored_seconds(part: TensorPart, plan: Plan) -> tuple[float, float]:
    """To bring results to memory: of the bus, and of the unit that copies tiles out. What else the stages behind read
    and write moves with them."""
    nest, target = part.nest, plan.target
    program, out = nest.mapping.program, nest.intrinsic.accumulator
    speed = target.memories[-1].bandwidth_bytes_per_s or target.clock_hz
    written = [*([nest.stage.assign] if part.keep else []), *(f.stage.assign for f in part.epilogue)]
    points, tiles = prod(a.extent for a in nest.spatial), prod(a.units for a in nest.spatial)
    bus, unit = 0.0, 0.0
    for tensor in dict.fromkeys(a.tensor for a in written):
        if program.tensors[tensor].intermediate and tensor != nest.stage.assign.tensor:
            continue  # a value on its way
        dtype = program.tensors[tensor].dtype
        bus += points * dtype.bits / 8 / speed
        copying = plan.units.leaving(target, tensor, out.dtype, dtype)
        unit += tiles * copying.cycles(out.elements) / target.clock_hz if copying else 0.0
    return bus, unit


def _latency(part: TensorPart, plan: Plan) -> float | None:
    """Seconds from a copy's start to its last byte, as the instruction that makes it says."""
    found = [plan.units.copying(plan.target, "memory", "inputs", o.dtype, o.dtype) for o in part.nest.intrinsic.inputs]
    stated = [c.latency for c in found if c is not None and c.latency is not None]
    return max(stated) / plan.target.clock_hz if stated else None


def _copies_of(part: TensorPart, plan: Plan, operand: str, v: Columns, speed: float) -> _Copies:
    nest, names, o = part.nest, part.names, part.nest.intrinsic.operands[operand]
    slots = v[slots_name(names, operand)]
    size = cut_off(nest, names, operand, v) * v[names(f"bytes_{operand}")] / slots
    copying = plan.units.copying(plan.target, "memory", "inputs", o.dtype, o.dtype)
    tile = copying.cycles(o.elements) / plan.target.clock_hz if copying else 0.0
    unit = size / (o.elements * o.dtype.bits / 8) * tile
    single = (slots == 1) & (v[resident_name(names, operand)] > 0)
    return _Copies(copies(nest, names, operand, v), size / speed, unit, single)


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
