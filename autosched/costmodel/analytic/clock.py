"""The analytic clock: seconds of each row, term by term, vectorised; no measurement.

A tensorized nest takes as long as the slowest of: issuing its instructions (or waiting for their latency, where the
register tile is too small), its loads, and the bytes it moves through each level of memory; a share of the other terms
is not hidden. Filling panels inside the call, starting and finishing register tiles and waking threads come on top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.cpu.caches import LEVELS, least_seconds, moved_seconds
from autosched.costmodel.analytic.cpu.copies import copy_seconds
from autosched.costmodel.analytic.cpu.guard_work import least_counted, sums_left, work_left
from autosched.costmodel.analytic.cpu.nest_cycles import nest_cycles
from autosched.costmodel.analytic.cpu.prepared_outside import prepared_cycles, prepares
from autosched.costmodel.analytic.cpu.scalar_cycles import element_cycles, scalar_cycles, scattered
from autosched.costmodel.analytic.cpu.scalar_memory import UNASKED, asked_bytes, memory_seconds, revisited_seconds
from autosched.costmodel.analytic.cpu.streams import knows_prefetch, waited_seconds
from autosched.costmodel.analytic.cpu.tlb import paging_seconds
from autosched.costmodel.analytic.gpu.code_constants import GENERATED, GpuCode
from autosched.costmodel.analytic.gpu.gpu_clock import ONCE, Repeated, gpu_scalar, gpu_tensor
from autosched.costmodel.analytic.gpu.gpu_elementwise import team_terms
from autosched.costmodel.analytic.gpu.least import gpu_least
from autosched.costmodel.analytic.gpu.within_block import InRegisters, grid_terms, one_core, times_of, within_block
from autosched.costmodel.analytic.spatial.spatial_clock import spatial_stages, spatial_tensor
from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import walk
from autosched.logic import Const
from autosched.machine.target import Target
from autosched.tiling.analysis.nontemporal import FAR_BYTES
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.asked_once import looked_at
from autosched.tiling.plans.fallback import check_elements
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Part,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.space.memoize_columns import memoize_columns
from autosched.tiling.space.values import rows_of
from autosched.tiling.steps import StepNames, is_gpu
from autosched.tiling.steps.gpu.bodies.only_nest import only_nest
from autosched.tiling.steps.gpu.bodies.uneven_grid import ORDER, uneven_grid

VERSIONS = {"cpu": "12", "gpu": "14", "spatial": "13"}
"""The clock's version for each kind of target."""
TERMS = ("compute", "load", "l2", "l3", "memory", "pack", "tile", "overhead")
"""Seconds by name; `total` combines them."""

# Constants of the code generator, not of a machine: what its code costs beyond the instructions it is made for.
UNHIDDEN = 0.15  # share of the shorter terms that does not overlap with the longest
# The same where registers hold matrices (Emerald Rapids, four shapes: a product takes 30 to 36 cycles where it alone
# takes 20, and loads with what comes from the second cache 16 to 35).
MATRICES_UNHIDDEN = 0.5
CHECK_CYCLES = 0.08  # one element looked at by a run-time check (vectors of 32 bytes, two operations each)
SCALAR_CYCLES = 1.0  # one scalar operation of a stage without an intrinsic
CALL_CYCLES = 60.0  # a call into the math library
FORK_SECONDS = 3e-6  # waking the pool and joining it

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]
Terms = dict[str, npt.NDArray[np.float64]]


def version(target: Target) -> str:
    """The clock's version for a target. A study names it; each kind of target has its own, so that studies of others go
    on when the clock of one changes."""
    return VERSIONS[scheme_of(target)]


def clock(plan: Plan, values: Columns, code: GpuCode = GENERATED) -> Terms:
    """Seconds per row: the terms of TERMS (of `gpu_clock.TERMS` for parts on a GPU) and `total`, each a float64 column;
    `values` are columns of `plan.space`, `code` says what a GPU's code costs beyond its units."""
    total: Terms = {}
    for part in timed_parts(plan):
        for name, column in part_terms(part, values, code).items():
            total[name] = total[name] + column if name in total else column
    return total


def floors(plan: Plan) -> tuple[Callable[[Columns], npt.NDArray[np.float64]], ...]:
    """For each part of the plan seconds that it takes at least. They add up to no more than `total`, and read fewer
    decisions: what a nest moves between caches is left out, and with it the order of its blocks."""
    return tuple(partial(_floor, part) for part in timed_parts(plan))


def parts(plan: Plan) -> tuple[Callable[[Columns], npt.NDArray[np.float64]], ...]:
    """For each of the same parts its seconds. They add up to `total`."""
    return tuple(partial(_exact, part) for part in timed_parts(plan))


def leasts(plan: Plan) -> tuple[Callable[[Columns, Column], Column] | None, ...]:
    """For each of the same parts what a row takes at least whose floor is a given number of seconds or more: between
    floor and exact time by what it reads, as by what it says. None where there is nothing between them."""
    between = {"cpu": _cpu_least, "gpu": _gpu_least}
    return tuple(
        partial(between[p.part.scheme], p, p.part, p.plan)
        if isinstance(p.part, TensorPart) and p.part.scheme in between and (not p.around or p.part.scheme == "gpu")
        else None
        for p in timed_parts(plan)
    )


def _gpu_least(timed: TimedPart, part: TensorPart, plan: Plan, values: Columns, floor: Column) -> Column:
    found = gpu_tensor(part.nest, part.names, values, plan.target, least=True, repeated=timed.grid or ONCE)
    return timed.repeated(found, values)["total"]


def _cpu_least(timed: TimedPart, part: TensorPart, plan: Plan, values: Columns, floor: Column) -> Column:
    nest, names = part.nest, part.names
    share = _share(nest, names, values, values[names("threads")].astype(np.float64))
    return least_seconds(nest, names, values, plan.target, share, _unhidden(nest), floor)


def _exact(part: TimedPart, values: Columns) -> npt.NDArray[np.float64]:
    return part_terms(part, values)["total"]


def _floor(part: TimedPart, values: Columns) -> npt.NDArray[np.float64]:
    return least_terms(part, values)["total"]


def part_terms(timed: TimedPart, values: Columns, code: GpuCode = GENERATED) -> Terms:
    """Seconds per row of one part, by term, in all iterations of the tile loops around it."""
    if timed.packed is not None and isinstance(timed.part, TileLoopsPart):
        return timed.repeated(_packing(timed, timed.part, timed.packed, values), values)
    return timed.repeated(_part_terms(timed, values, code), values)


def least_terms(timed: TimedPart, values: Columns) -> Terms:
    """Seconds per row that each term of a part takes at least, by what `floors` reads."""
    part = timed.part
    if timed.packed is not None:
        return part_terms(timed, values)
    if isinstance(part, TensorPart) and part.scheme == "cpu":
        terms = _tensor(part, values, timed.plan, timed.around, least=True)
    elif isinstance(part, TensorPart) and part.scheme == "gpu":
        terms = gpu_least(part.nest, part.names, values, timed.plan.target)
    else:
        terms = _part_terms(timed, values, GENERATED)
    return timed.repeated(terms, values)


@dataclass(frozen=True, eq=False)
class TimedPart:
    """A part that the clock adds up, of the `plan` that has it, inside tile loops `around`, the outermost first. Of
    tile loops it is their start, or what is packed in front of them for the nest `packed`: apart, so that the time of
    no part reads decisions of several nests."""

    part: Part
    plan: Plan
    around: tuple[TileLoopsPart, ...] = ()
    packed: TensorPart | None = None

    @cached_property
    def grid(self) -> Repeated | None:
        """How often the loops around run a nest whose blocks are those of their grid, which launches them; None of any
        other part."""
        if len(self.around) != 1 or not is_gpu(self.plan.target):
            return None
        nest = only_nest(self.around[0])
        return times_of(self.around[0], nest) if nest is not None and nest is self.part else None

    @cached_property
    def held(self) -> InRegisters | None:
        """What warps that share rows may hold of it in registers."""
        return InRegisters.of(self.part, self.plan, self.around[-1])

    def repeated(self, terms: Terms, values: Columns) -> Terms:
        """What one iteration takes, in all that the busiest thread has."""
        if self.grid is not None:
            return terms | {"launch": np.zeros_like(terms["launch"]), "total": terms["total"] - terms["launch"]}
        if self.around and is_gpu(self.plan.target):
            terms = within_block(terms, self.plan.target)
            if self.held is not None:
                terms = self.held.apply(terms, values, self.plan.target)
        for loops in self.around:
            threads = values[loops.names("threads")].astype(np.float64)
            shares = values[loops.names("shares")].astype(np.float64)
            times = loops.trips * busiest_share(shares, threads)
            if is_gpu(self.plan.target) and (uneven := uneven_grid(loops)) is not None:
                times = times * uneven.longer(values, loops.names(ORDER.name), shares / threads)
            terms = {name: column * times for name, column in terms.items()}
        return terms


def timed_parts(plan: Plan, around: tuple[TileLoopsPart, ...] = ()) -> list[TimedPart]:
    """Its parts but for those that run before the timed call; of tile loops those of their bodies, too."""
    found: list[TimedPart] = []
    for part in plan.parts:
        if not (isinstance(part, ScalarPart) and part.prepared):
            found.append(TimedPart(part, plan, around))
        if isinstance(part, TileLoopsPart):
            member = part.member
            if is_gpu(plan.target):  # a block's part runs on its core, however deep it lies
                whole = around or only_nest(part) is not None
                member = replace(member, target=plan.target if whole else one_core(plan.target))
            if not is_gpu(plan.target):
                nests = (t for t in part.member.tensor_parts if prepares(part, plan.program, t))
                found += [TimedPart(part, plan, around, nest) for nest in nests]
            found += timed_parts(member, (*around, part))
    return found


def _part_terms(timed: TimedPart, values: Columns, code: GpuCode) -> Terms:
    part, plan = timed.part, timed.plan
    match part:
        case TensorPart(scheme="gpu"):
            return gpu_tensor(part.nest, part.names, values, plan.target, code, repeated=timed.grid or ONCE)
        case TensorPart(scheme="spatial"):
            return spatial_tensor(part, values, plan)
        case ScalarPart() | FusedLoopsPart() | LiteralPart() if scheme_of(plan.target) == "spatial":
            return spatial_stages(stages_of(part, plan.program), plan, rows_of(values))
        case TensorPart():
            return _tensor(part, values, plan, timed.around)
        case ScalarPart():
            return _scalar(part, values, plan)
        case FusedLoopsPart():
            return _rows(part, part.members, values, plan)
        case WarpCooperativePart():
            none = np.zeros(rows_of(values))
            return dict.fromkeys(TERMS, none) | team_terms(part, values, plan.program, plan.target)
        case LiteralPart():
            return _literal(part, values, plan)
        case TileLoopsPart() if is_gpu(plan.target):
            return grid_terms(part, values, plan.target)
        case TileLoopsPart():
            threads = values[part.names("threads")].astype(np.float64)
            return _only_compute(np.zeros_like(threads), np.where(threads > 1, FORK_SECONDS, 0.0))


def _packing(timed: TimedPart, loops: TileLoopsPart, nest: TensorPart, values: Columns) -> Terms:
    threads = values[loops.names("threads")].astype(np.float64)
    cycles = prepared_cycles(loops, timed.plan.program, nest, values)
    packing = cycles / timed.plan.target.clock_hz / threads
    return {k: np.zeros_like(threads) for k in TERMS} | {"pack": packing, "total": packing}


def stages_of(part: ScalarPart | FusedLoopsPart | LiteralPart, program: Program) -> list[Stage]:
    """The stages that a part without an instruction computes."""
    match part:
        case ScalarPart():
            return [part.stage]
        case FusedLoopsPart():
            return [m.stage for m in part.members]
        case LiteralPart():
            return [s for s in program.stages if s.name in part.stages]


def _tensor(
    part: TensorPart, values: Columns, plan: Plan, around: tuple[TileLoopsPart, ...], *, least: bool = False
) -> Terms:
    """The terms of a nest in tile loops; with `least`, lower bounds that read no decision about cache blocks."""
    nest, names, target = part.nest, part.names, plan.target
    n = rows_of(values)
    threads = values[names("threads")].astype(np.float64)
    share = 1.0 / threads if least else _share(nest, names, values, threads)
    cycle = 1.0 / target.clock_hz

    def once(name: str, quantity: Callable[[Columns], Sequence[Column]]) -> list[Column]:
        return memoize_columns(values, names(f"{'floor' if least else 'clock'} {name}"), quantity)

    def dropped(v: Columns) -> npt.NDArray[np.float64]:
        n = rows_of(v)
        return np.full(n, least_counted(nest, around)) if least else sums_left(nest, names, v, n, around)

    compute, load, tile = once("core", lambda v: nest_cycles(nest, names, v, target))
    left = once("left", lambda v: (work_left(nest, names, v, rows_of(v)) * dropped(v),))[0]
    compute, load = compute * left, load * left
    terms: Terms = {"compute": compute * cycle * share, "load": load * cycle * share, "tile": tile * cycle * share}
    terms["tile"] = terms["tile"] + _beside(part, plan) * cycle * share
    if least:
        terms |= dict.fromkeys(LEVELS, np.zeros(n))
    else:
        terms |= moved_seconds(nest, names, values, target, share)
    terms["pack"] = once("pack", lambda v: (copy_seconds(nest, names, v, target, plan.formulas, least=least),))[0]
    terms["pack"] += CHECK_CYCLES * check_elements(nest.mapping.program, part.guards) * cycle  # by one thread
    terms["overhead"] = np.where(threads > 1, FORK_SECONDS, 0.0) + np.zeros(n)
    stack = np.stack([terms[k] for k in ("compute", "load", *LEVELS)])
    longest = stack.max(axis=0)
    hidden = longest + _unhidden(nest) * (stack.sum(axis=0) - longest)
    if knows_prefetch(nest) and not least:  # what is read again comes from a cache
        hidden = hidden + waited_seconds(nest, names, values, terms, target, UNHIDDEN)
    if not least:
        hidden = hidden + once("pages", lambda v: (paging_seconds(nest, names, v, target),))[0]
    terms["total"] = hidden + terms["tile"] + terms["pack"] + terms["overhead"]
    return terms


def _unhidden(nest: Nest) -> float:
    """Share of the shorter terms that does not overlap with the longest."""
    return UNHIDDEN if nest.intrinsic.matrices is None else MATRICES_UNHIDDEN


def _beside(part: TensorPart, plan: Plan) -> float:
    """Cycles of what is computed on each element at the start and at the end."""
    beside = (s.name for s in part.computed_stages if s is not part.nest.stage)
    values = (plan.program.stage(name).assign.value for name in beside)
    each = sum(element_cycles(v, plan.formulas, plan.target) for v in values)
    return each * prod(a.extent for a in part.nest.spatial)


SILENT = frozenset({"prefetch", "prefetch_out"})
"""Decisions that no term reads: their effect is left to measurement and to the learned model. Prefetching is read where
an operand streams from memory."""


def run_length(plan: Plan) -> int:
    """How many rows in a run of ids share one time: the combinations of the last decisions that the clock ignores."""
    length = 1
    read = {p.names("prefetch") for p in plan.tensor_parts if p.scheme == "cpu" and knows_prefetch(p.nest)}
    for decision in reversed(plan.space.decisions):
        if decision.name.split(".")[-1] not in SILENT or decision.name in read:
            break
        length *= len(decision.domain)
    return length


def _share(nest: Nest, names: StepNames, values: Columns, threads: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The part of the work that the busiest thread does."""
    if int(threads.max(initial=1)) == 1:
        return np.ones_like(threads)
    return busiest_share(values[names("shares")].astype(np.float64), threads)


def busiest_share(shares: Column, threads: Column) -> Column:
    """The part of so many pieces that the busiest thread has."""
    return np.where(threads > 1, np.ceil(shares / threads) / shares, 1.0)


def _work(part: ScalarPart, plan: Plan) -> float:
    """Cycles of a scalar stage: its operations over all points, library calls counted apart."""
    points = float(max(1, prod(_extent(a) for a in part.stage.axes)))
    nodes = list(walk(part.stage.assign.value))
    calls = sum(getattr(v, "function", "") in ("exp", "log", "tanh", "erf", "sigmoid") for v in nodes)
    return points * (SCALAR_CYCLES * len(nodes) + CALL_CYCLES * calls)


def _extent(axis: Axis) -> int:
    if isinstance(axis.lower, Const) and isinstance(axis.upper, Const):
        return axis.extent
    return 64  # a bound that depends on other axes: any guess ranks alike, since all rows share it


def _scalar(part: ScalarPart, values: Columns, plan: Plan) -> Terms:
    if part.scheme == "gpu":
        seen = replace(part, stage=looked_at(part.stage))
        return _only_compute(*gpu_scalar(seen, values, plan, _work(seen, plan), seen.stage is not part.stage))
    return _rows(part, (part,), values, plan)


def _rows(part: FusedLoopsPart | ScalarPart, members: Sequence[ScalarPart], values: Columns, plan: Plan) -> Terms:
    """Scalar stages in one pass over the rows that they share."""
    n = rows_of(values)
    names, none = part.names, np.zeros(n)
    threads = values[names("threads")].astype(np.float64)
    past, ahead = (np.asarray(values.get(names(d), none), np.float64) for d in ("stores", "ahead"))
    cycles = sum((scalar_cycles(m, values, n, plan.program, plan.target) for m in members), start=np.zeros(n))
    compute = cycles / plan.target.clock_hz / threads
    stages = tuple(looked_at(m.stage) for m in members)
    memory = memory_seconds(stages, plan.program, plan.target, threads, past) * scattered(members[0], values, n)
    terms = _only_compute(compute, np.where(threads > 1, FORK_SECONDS, 0.0))
    longest, other = np.maximum(compute, memory), np.minimum(compute, memory)
    again, unhidden = none, np.full(n, UNHIDDEN)
    if isinstance(part, FusedLoopsPart):
        rows = np.asarray(values.get(names("rows"), none + 1.0), np.float64)
        asked = asked_bytes(part, rows, ahead)
        again = revisited_seconds(part, plan.program, plan.target, rows, asked) / threads
        unhidden += UNASKED * np.maximum(0.0, 1.0 - asked / FAR_BYTES) if part.asked else 0.0
    total = longest + unhidden * other + UNHIDDEN * again + terms["overhead"]
    return terms | {"l2": again, "memory": memory, "total": total}


def _literal(part: LiteralPart, values: Columns, plan: Plan) -> Terms:
    found = stages_of(part, plan.program)
    work = sum(_work(ScalarPart(s, StepNames(), (), None, False), plan) for s in found if not s.seldom)
    n = rows_of(values)
    return _only_compute(np.full(n, work / plan.target.clock_hz), np.zeros(n))


def _only_compute(seconds: npt.NDArray[np.float64], overhead: npt.NDArray[np.float64]) -> Terms:
    terms = {k: np.zeros_like(seconds) for k in TERMS}
    return terms | {"compute": seconds, "overhead": overhead, "total": seconds + overhead}
