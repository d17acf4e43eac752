"""What no schedule of a plan goes below: its instructions at the rate that the target states, and what has to come out
of memory at its bandwidth. Nothing that code generation adds is in it, so a kernel that is faster says that a figure of
the target is too low, and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.clock import TimedPart, busiest_share, stages_of, timed_parts
from autosched.costmodel.analytic.cpu.guard_work import least_counted, work_left
from autosched.costmodel.analytic.cpu.least_scalar import least_cycles
from autosched.costmodel.analytic.gpu.rates import issue_rate
from autosched.costmodel.analytic.spatial.spatial_clock import least_on_bus
from autosched.costmodel.analytic.spatial.spatial_units import (
    array_seconds,
    least_epilogue_seconds,
    least_loads,
    least_stage_seconds,
    on_units,
)
from autosched.logic import Const
from autosched.machine.target import Target
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.plans.units import unit_of
from autosched.tiling.space.values import rows_of

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


def limit(plan: Plan, values: Columns, *, formulas: bool = True) -> Column:
    """Seconds that rows with these columns take at least; without `formulas` a function of a CPU's stage counts as one
    operation, as the simulator has it."""
    if scheme_of(plan.target) == "spatial":
        return np.full(rows_of(values), _of_units(plan))
    busy = np.zeros(rows_of(values))
    for timed in timed_parts(plan):
        each = _busy(timed, values, formulas)
        for loops in timed.around:  # of a nest whose blocks are the grid's `_busy` tells an even share already
            share = _least_share(loops, values) if timed.grid is None else 1.0
            each = each * loops.trips * share
        busy = busy + each
    return np.maximum(busy, _moving(plan))


def _least_share(loops: TileLoopsPart, values: Columns) -> Column:
    """The part of all iterations' work that one thread, or core, has at least: that of whole iterations where they are
    alike, else an even share."""
    threads, shares = (values[loops.names(n)].astype(np.float64) for n in ("threads", "shares"))
    bounds = (b for t in loops.loops for b in (t.axis.lower, t.axis.upper))
    alike = not loops.member.program.symbolic and all(isinstance(b, Const) for b in bounds)
    return busiest_share(shares, threads) if alike else 1.0 / threads


def _busy(timed: TimedPart, values: Columns, formulas: bool) -> Column:
    """Seconds to issue a part's instructions on all threads or cores that it may use, and on an accelerator of each
    other unit that it asks for; of stages without an instruction, on a CPU, their arithmetic in vectors; on a GPU
    nothing."""
    part, plan = timed.part, timed.plan
    target, n = plan.target, rows_of(values)
    if isinstance(part, TileLoopsPart):
        return np.zeros(n)  # what is inside counts by itself
    if not isinstance(part, TensorPart):
        if isinstance(part, WarpCooperativePart) or scheme_of(target) == "gpu":
            return np.zeros(n)
        if scheme_of(target) == "cpu":
            threads = np.ones(n) if isinstance(part, LiteralPart) else values[part.names("threads")]
            return _in_vectors(part, plan, formulas) / target.clock_hz / threads
        return np.zeros(n)
    nest = part.nest
    calls = prod(a.units for a in nest.axes) * np.ones(n)
    if part.scheme == "gpu":
        return calls / issue_rate(nest.intrinsic, target) / target.cores / target.clock_hz
    calls = calls * least_counted(nest, timed.around)
    rate = target.issues(nest.intrinsic)
    return calls * work_left(nest, part.names, values, n) / rate / values[part.names("threads")] / target.clock_hz


def _of_units(plan: Plan) -> float:
    """Seconds of the busiest unit of an accelerator, of all parts together: these run beside each other where nothing
    ties them."""
    asked: dict[str, float] = defaultdict(float)
    for timed in timed_parts(plan):
        part = timed.part
        if isinstance(part, TensorPart):
            own = on_units(part, array_seconds(part.nest, plan.target) | least_epilogue_seconds(part, timed.plan))
            apart = unit_of(part.nest.intrinsic)
            own |= {"compute": 0.0, "vector": own["compute"]} if apart == "vector" else {}
            own |= {"bus": least_on_bus(part, timed.plan)}
            for unit, seconds in least_loads(part, timed.plan).items():
                own[unit] = own.get(unit, 0.0) + seconds
        elif isinstance(part, ScalarPart | FusedLoopsPart | LiteralPart):
            own = least_stage_seconds(stages_of(part, timed.plan.program), timed.plan)
        else:
            continue
        for unit, seconds in own.items():
            asked[unit] += seconds
    return max(asked.values(), default=0.0)


def _in_vectors(part: ScalarPart | FusedLoopsPart | LiteralPart, plan: Plan, formulas: bool) -> float:
    """Cycles of one thread for the arithmetic of stages without an instruction."""
    match part:
        case ScalarPart():
            return least_cycles(part.stage, part.policy.formulas if formulas else {}, plan.target)
        case FusedLoopsPart():
            return sum(_in_vectors(member, plan, formulas) for member in part.members)
        case LiteralPart():
            return sum(least_cycles(stage, {}, plan.target) for stage in stages_of(part, plan.program))


def _moving(plan: Plan) -> float:
    """Seconds to bring in what the program is given, and take out what it answers, once, where no cache holds all of
    it: caches are warm. An accelerator's parts say what they move."""
    if scheme_of(plan.target) == "spatial":
        return 0.0
    target: Target = plan.target
    tensors = [t for t in plan.program.tensors.values() if not t.intermediate]
    size = sum(prod(t.extents) * t.dtype.bits / 8 for t in tensors)
    main = target.memories[-1] if target.memories else None
    if main is None or not main.bandwidth_bytes_per_s or any(m.bytes >= size for m in target.memories[:-1]):
        return 0.0
    return size / main.bandwidth_bytes_per_s
