"""Which loops of a plan are cut to one length: those over one dimension of an intermediate, and those that one part
runs as one. That two loops are equally long says nothing: a row of scores may be as long as a row of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autosched.ir.nodes import Axis
from autosched.ir.program import Program
from autosched.ir.value import Index, reads
from autosched.logic import Const, Var
from autosched.tiling.plans.plan import Plan, WarpCooperativePart
from autosched.tiling.plans.teams import inner_axes, row_axes

Loops = set[str]


def cut_as_reductions(plan: Plan) -> Loops:
    """The loops, by name, that are cut as a reduction is: where a row is summed and then scaled, both."""
    reduced = {a.name for s in plan.program.stages for a in s.reduction}
    tied = [*_over_dimensions(plan.program), *_run_as_one(plan)]
    return {name for loops in _joined(tied) if loops & reduced for name in loops}


def _over_dimensions(program: Program) -> Iterator[Loops]:
    """For each dimension of a tensor that the program writes, the loops that run over all of it."""
    written = {s.target.tensor for s in program.stages}
    over: dict[tuple[str, int], Loops] = {}
    for stage in program.stages:
        axes = {a.name: a for a in stage.axes}
        start = () if stage.init is None else tuple(reads(stage.init))
        for at in (stage.target, *stage.reads, *start):
            extents = program.tensors[at.tensor].extents
            for d, (index, extent) in enumerate(zip(at.index, extents, strict=True)):
                if at.tensor in written and (axis := _whole(index, axes, extent)):
                    over.setdefault((at.tensor, d), set()).add(axis.name)
    yield from over.values()


def _whole(index: Index, axes: dict[str, Axis], extent: int) -> Axis | None:
    """The axis that a subscript is, where it runs over the whole dimension."""
    axis = axes.get(index.name) if isinstance(index, Var) else None
    return axis if axis is not None and (axis.lower, axis.upper) == (Const(0), Const(extent)) else None


def _run_as_one(plan: Plan) -> Iterator[Loops]:
    """The loops of a team's members that have one number, of rows or of lanes."""
    for part in plan.parts:
        if isinstance(part, WarpCooperativePart):
            yield from _numbered_alike(row_axes(part, m) for m in part.members)
            yield from _numbered_alike(inner_axes(part, m) for m in part.members)


def _numbered_alike(members: Iterable[tuple[Axis, ...]]) -> Iterator[Loops]:
    found: dict[int, Loops] = {}
    for axes in members:
        for number, axis in enumerate(axes):
            found.setdefault(number, set()).add(axis.name)
    yield from found.values()


def _joined(tied: Iterable[Loops]) -> list[Loops]:
    """The sets, those with a loop in common as one."""
    result: list[Loops] = []
    for loops in tied:
        apart = [other for other in result if not other & loops]
        result = [*apart, loops.union(*(other for other in result if other & loops))]
    return result
