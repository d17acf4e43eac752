"""Teams: which scalar stages threads of a GPU compute together, and along which axes their lanes lie.

A warp reads memory well where its lanes are neighbours there. So lanes lie along the axis over which most elements are
read as neighbours: the reduction's, as for the sum of a row, or the result's, as for the sum of a column.

Stages one after the other become one kernel where what one writes another touches in the same iteration only, their
loops numbered alike: each stage's own iterations write distinct elements, so no two iterations of different numbers
meet, and one can follow the other number by number. Along a row that keeps each element with its thread; what a row is
reduced to all of its threads get.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Arith, Literal, Read, Select, Value, is_plain, is_value, map_value, reads, walk
from autosched.logic import Int, Var, free_vars, interval
from autosched.logic.walk import substitute_int
from autosched.machine.target import Target
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.analysis.dependence import Dependences
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.plan import ScalarPart, WarpCooperativePart
from autosched.tiling.plans.scalar_parts import EXTREMES, is_constant, side_by_side
from autosched.tiling.plans.step_names import StepNames

LEAST_BITS = 8
"""Narrower elements lie several to a byte: no thread writes one by itself; each reads what it wants."""


def team_parts(
    program: Program, parts: Sequence[ScalarPart], dependences: Dependences, policy: FloatPolicy, join: bool
) -> list[ScalarPart | WarpCooperativePart]:
    """The parts, in order, with those a team can compute as teams; with `join`, runs of them as one, each run as long
    as it can be."""
    result: list[ScalarPart | WarpCooperativePart] = []
    at = 0
    while at < len(parts):
        found: WarpCooperativePart | None = None
        for count in range(1, len(parts) - at + 1 if join else 2):
            stages = tuple(p.stage for p in parts[at : at + count])
            longer = team_part(program, stages, parts[at].names, dependences, policy)
            found = longer or found
            if longer is None and count > 1:
                break
        result.append(found or parts[at])
        at += len(found.members) if found else 1
    return result


def team_part(
    program: Program, stages: tuple[Stage, ...], names: StepNames, dependences: Dependences, policy: FloatPolicy
) -> WarpCooperativePart | None:
    """The stages as one team's work; None where that cannot be."""
    if not all(plain_stage(program, s) and _free(s, dependences) for s in stages):
        return None
    found = _along_rows(stages, names, policy)
    if found is None or _read_before(found):
        found = _along_results(stages, names, policy)
    if found is None or not _stays_with_threads(found):
        return None
    return found


def row_axes(part: WarpCooperativePart, stage: Stage) -> tuple[Axis, ...]:
    """The axes of a member that number rows."""
    return stage.spatial[: len(part.rows)]


def inner_axes(part: WarpCooperativePart, stage: Stage) -> tuple[Axis, ...]:
    """The axes of a member along which lanes lie: those inside rows, or (not `across`) the spatial ones."""
    if part.across:
        rows = row_axes(part, stage)
        return tuple(a for a in stage.axes if a not in rows)
    return stage.spatial


def numbered(part: WarpCooperativePart, member: Stage, value: Value) -> Value:
    """A value of a member with the axes of rows and of lanes by number: the same for all members."""
    names: dict[str, Int] = {a.name: Var(f".row{n}") for n, a in enumerate(row_axes(part, member))}
    names |= {a.name: Var(f".lane{n}") for n, a in enumerate(inner_axes(part, member))}
    return map_value(value, on_int=lambda i: substitute_int(i, names))


def along_lanes(part: WarpCooperativePart, member: Stage, value: Value) -> bool:
    """Whether a value of a member differs between lanes."""
    names: dict[str, Int] = {a.name: Var(f".{a.name}") for a in inner_axes(part, member)}
    return map_value(value, on_int=lambda i: substitute_int(i, names)) != value


def elements(axes: Sequence[Axis]) -> int:
    return prod(a.extent for a in axes)


def reducing(part: WarpCooperativePart) -> tuple[Stage, ...]:
    """The members that reduce."""
    return tuple(m for m in part.members if m.reduction)


def lane_elements(part: WarpCooperativePart) -> int:
    """Elements along the lanes: of a row, or of the result."""
    return max(elements(inner_axes(part, m)) for m in part.members)


def team_rows(part: WarpCooperativePart) -> int:
    """Rows of a team that lies along them."""
    return elements(row_axes(part, part.members[0]))


def serial_elements(part: WarpCooperativePart) -> int:
    """Terms of each result that threads take one after the other, where lanes lie along results; 1 without a sum."""
    return 1 if part.across else elements(part.members[0].reduction)


def whole(part: WarpCooperativePart) -> bool:
    """Whether all is one reduction (and what follows from its results), which blocks can share."""
    return (
        len(reducing(part)) == 1
        and bool(part.members[0].reduction)
        and all(not m.reduction and not (part.across and inner_axes(part, m)) for m in part.members[1:])
    )


def waits_for_memory(
    program: Program, stage: Stage, dependences: Dependences, target: Target, policy: FloatPolicy
) -> bool:
    """Whether threads of a team would compute a stage faster than memory brings what it reads: instructions that do
    more at once gain nothing then, and may want elements that are not there (one row of a product)."""
    if team_part(program, (stage,), StepNames(), dependences, policy) is None:
        return False
    main = target.memories[-1].bandwidth_bytes_per_s if target.memories else None
    if not main or "scalar" not in target.rates:
        return False
    places = {r.tensor: _touched(stage, r) * r.dtype.bits / 8 for r in stage.reads}
    nodes = sum(not isinstance(n, Read | Literal) for n in walk(stage.assign.value)) + 1
    issued = elements(stage.axes) * nodes / (target.rates["scalar"] * target.cores * target.clock_hz)
    return issued <= sum(places.values()) / main


# -- what a stage may be --------------------------------------------------------------------------------------------


def plain_stage(program: Program, stage: Stage) -> bool:
    """Whether a stage has constant loops, addresses and guards by formulas, a result of whole bytes, and no division
    that might be by zero where a lane has no element."""
    bounds = all(is_constant(a) and a.extent > 0 for a in stage.axes)
    values = [stage.assign.value, *([stage.init] if stage.init is not None else [])]
    places = [stage.target, *(r for v in values for r in reads(v))]
    formulas = all(is_plain(r.index) for r in places)
    wide = stage.target.dtype.bits >= LEAST_BITS
    nodes = [n for v in values for n in walk(v)]
    divides = any(isinstance(n, Arith) and n.op in ("//", "%") and not isinstance(n.right, Literal) for n in nodes)
    guards = not any(is_value(g) for g in stage.guards)
    if not (bounds and formulas and wide and guards) or divides:
        return False
    return not any(_strays(program, stage, v) for v in values)


def _strays(program: Program, stage: Stage, value: Value) -> bool:
    """Whether an element on one side of a choice may lie outside of its tensor where the other side is chosen: threads
    of a team read an element wherever they have a result."""
    sides = [side for n in walk(value) if isinstance(n, Select) for side in (n.then, n.other)]
    return not all(lies_inside(program, stage, read) for side in sides for read in reads(side))


def lies_inside(program: Program, stage: Stage, read: Read) -> bool:
    """Whether the element lies in its tensor all over the stage's loops, whatever guards say. By intervals: False for
    an address from data."""
    ranges = {a.name: (interval(a.lower, {})[0], interval(a.upper, {})[1] - 1) for a in stage.axes}
    for index, extent in zip(read.index, program.tensors[read.tensor].extents, strict=True):
        low, high = interval(index, ranges) if isinstance(index, Int) else (-1, 0)
        if low < 0 or high >= extent:
            return False
    return True


def _free(stage: Stage, dependences: Dependences) -> bool:
    found = dependences.stage(stage.name)
    spatial = {a.name for a in stage.spatial}
    return not found.of_kind("serial") and spatial <= set(found.of_kind("independent"))


def summed(stage: Stage, policy: FloatPolicy) -> bool:
    """Whether a reduction's terms may be taken in any order, by several threads."""
    op, dtype = stage.assign.op, stage.assign.value.dtype
    return policy.reorders(op, dtype) and (op not in ("min=", "max=") or dtype.name in EXTREMES)


def _accumulates(stage: Stage) -> bool:
    """Whether a register may hold what a reduction has so far: it starts with its own value, and does not read it."""
    assign = stage.assign
    return assign.op != "=" and stage.init is not None and assign.tensor not in {r.tensor for r in stage.reads}


# -- lanes along rows -----------------------------------------------------------------------------------------------


def _along_rows(stages: tuple[Stage, ...], names: StepNames, policy: FloatPolicy) -> WarpCooperativePart | None:
    sums = [s for s in stages if s.reduction]
    if not sums or not all(summed(s, policy) and _accumulates(s) for s in sums):
        return None
    if len(stages) > 1 and any(s.guards for s in stages):  # what one of them leaves out of a row, another may read
        return None
    if not all(_reads_along(s, s.reduction[-1].name) for s in sums):
        return None
    rows = sums[0].spatial
    part = WarpCooperativePart(tuple(a.name for a in rows), stages, names, True, policy, policy.reassociate)
    lanes: set[Bounds] = set()
    for stage in stages:
        if stage.reduction and len(stage.spatial) != len(rows):
            return None
        if _bounds(row_axes(part, stage)) != _bounds(rows):
            return None
        lanes |= {_bounds(inner)} if (inner := inner_axes(part, stage)) else set()
    return part if len(lanes) == 1 else None


def _reads_along(stage: Stage, axis: str) -> bool:
    """Whether more elements are read side by side along this axis than along the results."""
    result = stage.spatial[-1].name if stage.spatial else ""
    along: dict[str, int] = {axis: 0, result: 0}
    for read in dict.fromkeys(stage.reads):
        for name in along:
            if name and side_by_side(read, name):
                along[name] = max(along[name], _touched(stage, read))
    return along[axis] >= along[result] and along[axis] > 0


def _touched(stage: Stage, read: Read) -> int:
    """Elements that a stage reads of a tensor."""
    return elements([a for a in stage.axes if any(a.name in free_vars(i) for i in read.index if isinstance(i, Int))])


# -- lanes along results --------------------------------------------------------------------------------------------


def _along_results(stages: tuple[Stage, ...], names: StepNames, policy: FloatPolicy) -> WarpCooperativePart | None:
    first, *others = stages
    if not first.spatial or any(s.reduction for s in others) or (first.reduction and not _accumulates(first)):
        return None
    if any(_bounds(s.axes) != _bounds(first.spatial) for s in others):
        return None
    if others and any(s.guards for s in stages if not s.reduction):
        return None
    return WarpCooperativePart((), stages, names, False, policy, policy.reassociate)


Bounds = tuple[tuple[Int, Int], ...]


def _bounds(axes: Sequence[Axis]) -> Bounds:
    return tuple((a.lower, a.upper) for a in axes)


# -- what passes between stages -------------------------------------------------------------------------------------


def _stays_with_threads(part: WarpCooperativePart) -> bool:
    """Whether members touch what others write in iterations of the same number alone."""
    written = {m.assign.tensor for m in part.members}
    places: dict[str, set[Value]] = {}
    for member in part.members:
        values: list[Value] = [member.assign.value, *([member.init] if member.init is not None else [])]
        for place in (member.target, *(r for v in values for r in reads(v))):
            if place.tensor in written:
                places.setdefault(place.tensor, set()).add(numbered(part, member, place))
    return len(part.members) == 1 or all(len(found) == 1 for found in places.values())


def _read_before(part: WarpCooperativePart) -> bool:
    """Whether lanes of a row read a number of it in memory that one of them writes afterwards: it might come first."""
    numbers = {m.assign.tensor for m in part.members if m.reduction or not inner_axes(part, m)}
    for member in part.members:
        if any(r.tensor in numbers for r in all_reads(member)):
            return True
        numbers.discard(member.assign.tensor)  # it is in registers from here on
    return False
