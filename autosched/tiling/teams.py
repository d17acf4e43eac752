"""Teams: which scalar stages threads of a GPU compute together, and along which axes their lanes lie.

A warp reads memory well where its lanes are neighbours there. So lanes lie along the axis over which most elements are
read as neighbours: the reduction's, as for the sum of a row, or the result's, as for the sum of a column. Stages that
share loops stay together in one kernel, as far as each element that passes between them stays with its thread, or is
the result of a row, which all threads get.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from autosched.ir.program import Axis, Program, Stage
from autosched.ir.value import Arith, Literal, Read, Value, is_plain, reads, walk
from autosched.logic import Int, Var, free_vars
from autosched.logic.walk import substitute_int
from autosched.tiling.dependence import Dependences, together
from autosched.tiling.leeway import Leeway
from autosched.tiling.plan import ScalarPart, TeamPart
from autosched.tiling.scalar_parts import EXTREMES, is_constant, side_by_side
from autosched.tiling.steps import StepNames

LEAST_BITS = 8
"""Narrower elements lie several to a byte: no thread writes one by itself."""


def team_parts(
    program: Program, parts: Sequence[ScalarPart], dependences: Dependences, leeway: Leeway, join: bool
) -> list[ScalarPart | TeamPart]:
    """The parts, in order, with those a team can compute as teams; with `join`, runs of them as one, each run as long
    as it can be."""
    result: list[ScalarPart | TeamPart] = []
    at = 0
    while at < len(parts):
        found: TeamPart | None = None
        for count in range(1, len(parts) - at + 1 if join else 2):
            stages = tuple(p.stage for p in parts[at : at + count])
            longer = team_part(program, stages, parts[at].names, dependences, leeway)
            found = longer or found
            if longer is None and count > 1:
                break
        result.append(found or parts[at])
        at += len(found.members) if found else 1
    return result


def team_part(
    program: Program, stages: tuple[Stage, ...], names: StepNames, dependences: Dependences, leeway: Leeway
) -> TeamPart | None:
    """The stages as one team's work; None where that cannot be."""
    if not all(_plain(program, s) and _free(s, dependences) for s in stages):
        return None
    found = _along_rows(program, stages, names, leeway) or _along_results(program, stages, names, leeway)
    if found is None or not _stays_with_threads(program, found):
        return None
    return found


def inner_axes(part: TeamPart, stage: Stage) -> tuple[Axis, ...]:
    """The axes of a member along which lanes lie: of those inside `rows`, or (not `across`) the spatial ones."""
    if part.across:
        return tuple(a for a in stage.axes if a.name not in part.rows)
    return stage.spatial


def elements(axes: Sequence[Axis]) -> int:
    return prod(a.extent for a in axes)


def reducing(part: TeamPart) -> tuple[Stage, ...]:
    """The members that reduce."""
    return tuple(m for m in part.members if m.reduction)


def lane_elements(part: TeamPart) -> int:
    """Elements along the lanes: of a row, or of the result."""
    return max(elements(inner_axes(part, m)) for m in part.members)


def team_rows(part: TeamPart) -> int:
    """Rows of a team that lies along them."""
    return elements([a for a in part.members[0].axes if a.name in part.rows])


def serial_elements(part: TeamPart) -> int:
    """Terms of each result that threads take one after the other, where lanes lie along results; 1 without a sum."""
    return 1 if part.across else elements(part.members[0].reduction)


def whole(part: TeamPart) -> bool:
    """Whether all is one reduction (and what follows from its results), which blocks can share."""
    return len(reducing(part)) == 1 and bool(part.members[0].reduction) and all(
        not m.reduction and not (part.across and inner_axes(part, m)) for m in part.members[1:]
    )


# -- what a stage may be --------------------------------------------------------------------------------------------


def _plain(program: Program, stage: Stage) -> bool:
    """Whether a stage has constant loops, addresses by formulas, whole bytes, no guards, and no division that might be
    by zero where a lane has no element."""
    bounds = all(is_constant(a) and a.extent > 0 for a in stage.axes)
    values = [stage.assign.value, *([stage.init] if stage.init is not None else [])]
    places = [stage.target, *(r for v in values for r in reads(v))]
    formulas = all(is_plain(r.index) for r in places)
    wide = all(program.tensors[r.tensor].dtype.bits >= LEAST_BITS for r in places)
    nodes = [n for v in values for n in walk(v)]
    divides = any(isinstance(n, Arith) and n.op in ("//", "%") and not isinstance(n.right, Literal) for n in nodes)
    return bounds and formulas and wide and not stage.guards and not divides


def _free(stage: Stage, dependences: Dependences) -> bool:
    found = dependences.stage(stage.name)
    spatial = {a.name for a in stage.spatial}
    return not found.of_kind("serial") and spatial <= set(found.of_kind("independent"))


def _summed(stage: Stage, leeway: Leeway) -> bool:
    """Whether a reduction's terms may be taken in any order, by several threads."""
    op, dtype = stage.assign.op, stage.assign.value.dtype
    return leeway.reorders(op, dtype) and (op not in ("min=", "max=") or dtype.name in EXTREMES)


def _accumulates(stage: Stage) -> bool:
    """Whether a register may hold what a reduction has so far: it starts with its own value, and does not read it."""
    assign = stage.assign
    return assign.op != "=" and stage.init is not None and assign.tensor not in {r.tensor for r in stage.reads}


# -- lanes along rows -----------------------------------------------------------------------------------------------


def _along_rows(
    program: Program, stages: tuple[Stage, ...], names: StepNames, leeway: Leeway
) -> TeamPart | None:
    sums = [s for s in stages if s.reduction]
    if not sums or not all(_summed(s, leeway) and _accumulates(s) for s in sums):
        return None
    if not all(_reads_along(program, s, s.reduction[-1].name) for s in sums):
        return None
    rows = tuple(a.name for a in sums[0].spatial)
    if any(tuple(a.name for a in s.spatial) != rows for s in sums):
        return None
    part = TeamPart(rows, stages, names, True, leeway, leeway.reassociate)
    lanes = None
    for stage in stages:
        inner = inner_axes(part, stage)
        if len(stages) > 1 and tuple(a.name for a in stage.axes[: len(rows)]) != rows:
            return None
        if not inner:
            continue
        bounds = tuple((a.lower, a.upper) for a in inner)
        if lanes is not None and bounds != lanes:
            return None
        lanes = bounds
    if len(stages) > 1 and rows and not _independent(program, stages, rows):
        return None
    return part


def _reads_along(program: Program, stage: Stage, axis: str) -> bool:
    """Whether more elements are read side by side along this axis than along the results."""
    result = stage.spatial[-1].name if stage.spatial else ""
    along: dict[str, int] = {axis: 0, result: 0}
    for read in dict.fromkeys(stage.reads):
        for name in along:
            if name and side_by_side(read, name):
                used = [a for a in stage.axes if any(a.name in free_vars(i) for i in read.index if isinstance(i, Int))]
                along[name] = max(along[name], elements(used))
    return along[axis] >= along[result] and along[axis] > 0


# -- lanes along results --------------------------------------------------------------------------------------------


def _along_results(
    program: Program, stages: tuple[Stage, ...], names: StepNames, leeway: Leeway
) -> TeamPart | None:
    first, *others = stages
    if not first.spatial or any(s.reduction for s in others) or (first.reduction and not _accumulates(first)):
        return None
    spatial = tuple(a.name for a in first.spatial)
    if any(tuple(a.name for a in s.axes) != spatial for s in others):
        return None
    if others and not _independent(program, stages, spatial):
        return None
    return TeamPart((), stages, names, False, leeway, leeway.reassociate)


def _independent(program: Program, stages: Sequence[Stage], axes: tuple[str, ...]) -> bool:
    found = together(program, [s.name for s in stages], axes)
    return all(axis.kind == "independent" for axis in found)


# -- what passes between stages -------------------------------------------------------------------------------------


def _stays_with_threads(program: Program, part: TeamPart) -> bool:
    """Whether what one member leaves for another is read by the thread that wrote it, or is a row's result."""
    written = {m.assign.tensor for m in part.members}
    places: dict[str, set[tuple[object, ...]]] = {}
    for member in part.members:
        inner = inner_axes(part, member)
        renamed: dict[str, Int] = {a.name: Var(f".{n}") for n, a in enumerate(inner)} if part.across else {}
        values: list[Value] = [member.assign.value, *([member.init] if member.init is not None else [])]
        for place in (member.target, *(r for v in values for r in reads(v))):
            if place.tensor in written:
                places.setdefault(place.tensor, set()).add(_place(place, renamed))
    return all(len(found) == 1 for found in places.values())


def _place(read: Read, renamed: dict[str, Int]) -> tuple[object, ...]:
    return tuple(substitute_int(i, renamed) if isinstance(i, Int) else i for i in read.index)
