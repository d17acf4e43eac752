"""A proved rewrite: neighbouring loops over one range become one loop, so that their stages can run as rows.

    for i: S[i] = sum of X[i, :]            for i: S[i] = sum of X[i, :]
    for i: Y[i, :] = X[i, :] / S[i]                Y[i, :] = X[i, :] / S[i]

Taking the joined loop apart again is what dependences allow or forbid; where they allow it, both are the same program.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.value import reads, substitute, substitute_condition, substitute_index
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.analysis.dependence import analyse


def join_loops(program: Program) -> Rewrite | None:
    """All neighbouring top-level loops joined where that is proved right and they touch a common tensor; None where
    there are none."""
    joined: list[str] = []
    before, at = program, 0
    while at + 1 < len(program.body):
        after = _joined(program, at)
        if after is None:
            at += 1
        else:
            first = program.body[at]
            assert isinstance(first, Loop)
            joined.append(first.axis.name)
            program = after
    if not joined:
        return None
    names = ", ".join(dict.fromkeys(joined))
    proof = (f"no iteration of a later loop over {names} touches what a later iteration of an earlier one does",)
    return Rewrite(f"loops of {names} joined", before, program, proof)


def _joined(program: Program, at: int) -> Program | None:
    first, second = program.body[at : at + 2]
    if not isinstance(first, Loop) or not isinstance(second, Loop):
        return None
    bounds = (first.axis.lower, first.axis.upper)
    if bounds != (second.axis.lower, second.axis.upper) or not all(isinstance(b, Const) for b in bounds):
        return None
    if not _touched(first) & _touched(second):
        return None
    renamed = tuple(_renamed(s, {second.axis.name: Var(first.axis.name)}) for s in second.body)
    loop = replace(first, body=(*first.body, *renamed))
    after = replace(program, body=(*program.body[:at], loop, *program.body[at + 2 :]))
    if [s.name for s in after.stages] != [s.name for s in program.stages] or after.inputs != program.inputs:
        return None  # an output that is no longer seen to be written before it is read would have to be passed in
    names = {s.assign.tensor: s.name for s in after.stages}
    if len(names) < len(after.stages):
        return None  # a tensor of several stages: which of them stands in which loop is not looked at
    earlier = [names[a.tensor] for a in assigns(first)]
    later = [names[a.tensor] for a in assigns(second)]
    found = analyse(after)
    apart = all(found.distributable(a, b) for a in earlier for b in later)
    return after if apart else None


def _touched(loop: Loop) -> set[str]:
    found = assigns(loop)
    return {a.tensor for a in found} | {r.tensor for a in found for r in reads(a.value)}


def _renamed(stmt: Statement, to: dict[str, Int]) -> Statement:
    match stmt:
        case Loop(axis, body):
            axis = replace(axis, lower=substitute_int(axis.lower, to), upper=substitute_int(axis.upper, to))
            return Loop(axis, tuple(_renamed(s, to) for s in body))
        case Guard(condition, body):
            return Guard(substitute_condition(condition, to), tuple(_renamed(s, to) for s in body))
        case Assign():
            index = tuple(substitute_index(i, to) for i in stmt.index)
            return replace(stmt, index=index, value=substitute(stmt.value, to))
