"""Rows that a loop carries from one number on: registers begin with the number, and the stage in front is left out.

    for i, e: A[i, e] = 0                         for warpgroup: A_held[…] = 0
    for j_block: A[i, e] += P[i, j] V[j, e]   →   for j_block: A_held[…] += …
"""

from __future__ import annotations

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Literal
from autosched.logic import Const, Int, Var, interval
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.plan import TileLoopsPart


def runs(loops: TileLoopsPart, program: Program) -> bool:
    """Whether the loops have an iteration, wherever they stand in the program."""
    return all(interval(t.axis.upper - t.axis.lower, program.symbolic)[0] > 0 for t in loops.loops)


def constant_start(loops: TileLoopsPart, program: Program, name: str) -> tuple[Stage, Literal] | None:
    """The stage of the program that sets all of a tensor, which the body of loops knows as `name`, to one number before
    anything else touches it, and the number; None where there is none, or the tensor is no intermediate."""
    window = loops.windows[name]
    tensor, inner = program.tensors[window.tensor], loops.member.program.tensors[name]
    whole = inner.extents == tensor.extents and all(i == Const(0) for i in window.start)
    if not (tensor.intermediate and whole):
        return None
    first = next(n for n, s in enumerate(program.stages) if s.name in loops.stages)
    before = [s for s in program.stages[:first] if _touches(s, tensor.name)]
    if len(before) != 1 or not _sets_all(before[0], tensor.extents):
        return None
    value = before[0].assign.value
    return (before[0], value) if isinstance(value, Literal) else None


def _touches(stage: Stage, tensor: str) -> bool:
    return stage.assign.tensor == tensor or any(r.tensor == tensor for r in all_reads(stage))


def _sets_all(stage: Stage, extents: tuple[int, ...]) -> bool:
    """Whether a stage assigns to each element of a tensor, whatever it was."""
    axes = {a.name: a for a in stage.axes}
    names = [i.name for i in stage.assign.index if isinstance(i, Var)]
    plain = stage.assign.op == "=" and stage.init is None and not stage.guards and len(set(names)) == len(extents)
    if not plain or set(names) != axes.keys():
        return False
    bounds: list[tuple[Int, Int]] = [(axes[n].lower, axes[n].upper) for n in names]
    return bounds == [(Const(0), Const(n)) for n in extents]
