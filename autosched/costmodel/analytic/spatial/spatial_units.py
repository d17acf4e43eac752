"""Seconds that stages ask of an accelerator's units beside its array, counted from the program.

Operations that follow on each finished element cost what the target states of them (`tiling.plans.units`), one by one;
stages that the array has no part in also load and store each element on the host, unless the accelerator's own unit
computes them. The functions called `least_…` are what no code goes below: what is computed twice counts once, and what
does not change from element to element, which code computes before, not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import prod

from autosched.costmodel.analytic.cpu.scalar_cycles import extent
from autosched.ir.nodes import Stage
from autosched.ir.value import Read, Value, reads, walk
from autosched.ir.variables import index_vars
from autosched.logic import Const
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import Plan, TensorPart
from autosched.tiling.plans.units import operation_of, unit_of

Seconds = dict[str, float]
"""By unit: `vector`, `host`, and of stages on the host `bus`."""


def array_seconds(nest: Nest, target: Target) -> Seconds:
    """Seconds of the array, and of the ports of what it reads and sums into: all that its issues ask for, without what
    stays in its states."""
    intrinsic, out = nest.intrinsic, nest.intrinsic.accumulator
    issues = float(prod(a.units for a in nest.axes))
    read = sum(o.elements * o.dtype.bits / 8 for o in intrinsic.inputs if not o.state)
    return {
        "compute": issues * nest.issue_time / target.issues(intrinsic) / target.clock_hz,
        "scratchpad": issues * read / _port(target, "inputs"),
        "accumulators": issues * out.elements * out.dtype.bits / 8 / _port(target, "accumulators"),
    }


@dataclass(frozen=True)
class LoadedState:
    """Of an operand in a state: what one load takes of the unit that makes it, until what it brings is there, and of
    the port that it reads through, in seconds. `ahead`: the array goes on with what was loaded before."""

    operand: str
    unit: float
    there: float
    port: float
    ahead: bool


def loaded_states(nest: Nest, plan: Plan) -> list[LoadedState]:
    """The states of a nest; without a figure of its load, one costs its port alone."""
    found, target = [], plan.target
    for o in nest.intrinsic.held:
        loading = plan.units.loading(target, o)
        unit = loading.cycles(o.elements) / target.clock_hz if loading else 0.0
        last = (loading.latency or 0.0) / target.clock_hz if loading else 0.0
        port = o.elements * o.dtype.bits / 8 / _port(target, "inputs")
        ahead = loading is not None and loading.ahead
        found.append(LoadedState(o.name, unit, max(unit, port, last), port, ahead))
    return found


def least_loads(part: TensorPart, plan: Plan) -> Seconds:
    """What loading each tile of a state once takes: of the array where it waits, else of the unit that loads."""
    found, nest = {"compute": 0.0, "loads": 0.0, "scratchpad": 0.0}, part.nest
    for state in loaded_states(nest, plan):
        tiles = float(prod(a.units for a in nest.operand_axes(state.operand)))
        found["loads" if state.ahead else "compute"] += tiles * state.unit
        found["scratchpad"] += tiles * state.port
    return found


def on_units(part: TensorPart, asked: Seconds) -> Seconds:
    """The same where the unit that finishes elements also issues the part's instruction: one after the other."""
    if unit_of(part.nest.intrinsic) == "vector":
        return asked | {"compute": asked["compute"] + asked["vector"]}
    return asked


def _port(target: Target, what: str) -> float:
    """Bytes a second of the memory that holds inputs or accumulators."""
    speeds = (m.bandwidth_bytes_per_s for m in target.memories if what in m.holds)
    return next((s for s in speeds if s), float("inf"))


def epilogue_seconds(part: TensorPart, plan: Plan) -> Seconds:
    """What is computed on each element of all whole tiles, before sums start and once they are done."""
    tiles = _whole(part)
    found = {"vector": 0.0, "host": 0.0}
    if part.nest.stage.init is not None:
        _add(found, plan, _operations(walk(part.nest.stage.init)), float(tiles))
    for fused in part.epilogue:
        assign = fused.stage.assign
        each = part.nest.intrinsic.accumulator.elements
        if (cycles := plan.units.finish(plan.target, assign.tensor, each)) is not None:
            found["vector"] += tiles / each * cycles / plan.target.clock_hz
            continue
        updated = [("", assign.value.dtype.name)] if assign.op != "=" else []
        _add(found, plan, [*_operations(walk(assign.value)), *updated], float(tiles))
    return found


def read_beside(part: TensorPart) -> float:
    """Bytes that sums start from, and that stages behind them read: of each tile the distinct elements."""
    nest = part.nest
    same = {a.name: a.name for a in nest.spatial}
    wanted = [(r, same) for r in (reads(nest.stage.init) if nest.stage.init is not None else ())]
    wanted += [(r, f.axes) for f in part.epilogue for r in reads(f.stage.assign.value)]
    own = {nest.stage.assign.tensor, *(f.stage.assign.tensor for f in part.epilogue)}
    total = 0.0
    for read, names in wanted:
        if read.tensor not in own:
            moving = {names.get(n, n) for n in index_vars(read.index)}
            total += read.dtype.bits / 8 * prod(a.units * (a.unit if a.name in moving else 1) for a in nest.spatial)
    return total


def least_epilogue_seconds(part: TensorPart, plan: Plan) -> Seconds:
    """What epilogues take at least."""
    found = {"vector": 0.0, "host": 0.0}
    made = {part.nest.stage.assign.tensor}
    for fused in part.epilogue:
        cycles = plan.units.finish(plan.target, fused.stage.assign.tensor, _whole(part))
        if cycles is None:
            moving = _changing(fused.stage.assign.value, lambda read: read.tensor in made)
            _add(found, plan, _operations(moving), _points(fused.stage, False))
        else:
            found["vector"] += cycles / plan.target.clock_hz
        made.add(fused.stage.assign.tensor)
    return found


def _whole(part: TensorPart) -> int:
    """Elements of all whole tiles of results."""
    return prod(a.units for a in part.nest.spatial) * part.nest.intrinsic.accumulator.elements


def stage_seconds(stages: Iterable[Stage], plan: Plan) -> Seconds:
    """What stages without the array ask of the host, of the unit that computes element by element, and of the bus."""
    target = plan.target
    found, moved, elements = {"vector": 0.0, "host": 0.0}, 0.0, 0.0
    for stage in stages:
        points, assign = _points(stage, True), stage.assign
        updated = [("", assign.value.dtype.name)] if assign.op != "=" or stage.reduction else []
        moving = partial(_moves, frozenset(a.name for a in stage.axes[-1:]))
        nodes = list(walk(assign.value))
        inside = [n for n in nodes if any(moving(r) for r in reads(n))]
        _add(found, plan, [*_operations(inside), *updated], points)
        once = points / prod(extent(a) for a in stage.axes[-1:])  # computed before the innermost loop
        _add(found, plan, _operations(n for n in nodes if n not in inside), once)
        loaded = [r for r in reads(assign.value) if moving(r)]
        results = _points(stage, False)
        elements += points * len(loaded) / target.rates.get("load", _scalar(target))
        elements += results / target.rates.get("store", _scalar(target))
        moved += points * sum(r.dtype.bits / 8 for r in loaded) + results * assign.value.dtype.bits / 8
    if found["host"] or not found["vector"]:
        found["host"] += elements / target.clock_hz
    main = target.memories[-1].bandwidth_bytes_per_s or target.clock_hz
    return found | {"bus": moved / main}


def least_stage_seconds(stages: Iterable[Stage], plan: Plan) -> Seconds:
    """What such stages take at least: operations on what changes with the innermost loop."""
    found = {"vector": 0.0, "host": 0.0}
    for stage in stages:
        if stage.guards or not all(isinstance(b, Const) for a in stage.axes for b in (a.lower, a.upper)):
            continue  # how often it runs depends on where
        moving = _changing(stage.assign.value, partial(_moves, frozenset(a.name for a in stage.axes[-1:])))
        _add(found, plan, _operations(moving), _points(stage, True))
    return found


def _changing(value: Value, changes: Callable[[Read], bool]) -> set[Value]:
    """The distinct parts of a value that change with an element of which `changes` holds."""
    return {n for n in walk(value) if any(changes(r) for r in reads(n))}


def _moves(axes: frozenset[str], read: Read) -> bool:
    """Whether one of these axes takes a read to other elements."""
    return bool(axes & index_vars(read.index))


def _operations(nodes: Iterable[Value]) -> list[tuple[str, str]]:
    return [kind for n in nodes if (kind := operation_of(n)) is not None]


def _add(found: Seconds, plan: Plan, operations: Iterable[tuple[str, str]], times: float) -> None:
    for function, dtype in operations:
        unit, cycles = plan.units.price(plan.target, function, dtype)
        found[unit] += times * cycles / plan.target.clock_hz


def _points(stage: Stage, reduced: bool) -> float:
    return float(prod(extent(a) for a in (stage.axes if reduced else stage.spatial)))


def _scalar(target: Target) -> float:
    return target.rates.get("scalar", 1.0)
