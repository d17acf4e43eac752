"""`factor_by_group`: a sum of groups (`grouped.sum_by_group`) whose factor is applied once a group.

    for g: for i: for q: G[g, i] += A[i, g * 32 + q]
    for i: for g: Y[i] += G[g, i] * D[g]
    for i: if Y[i] is not finite: for k: Y[i] += A[i, k] * D[k // 32]

One look at the result is enough: a group whose sum is infinite or no number, or whose product is, makes the result so.
No factor hides it, since infinity times zero is no number, and a sum does not lose it.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.dtypes import DTYPES
from autosched.ir.nodes import Assign, Guard, Loop, Stage, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.text import times
from autosched.ir.rewrites.factors.distribute import own_names
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.rewrites.online.states import MemberStates
from autosched.ir.value import (
    Call,
    Comparison,
    Literal,
    Read,
    Select,
    Value,
    substitute,
)
from autosched.logic import Int, Var

FLAG = DTYPES["u8"]


def factor_by_group(stage: Stage, grouped: Program, carried: MemberStates) -> Program:
    """`grouped` with the term of `carried`, the sum of a group, in place of what it adds up, and its factor in the sum
    of the groups. `stage` is what the program adds up as written: it is computed where that sum is not finite. Raises
    NoText for a factor that has no text."""
    part, (state,) = carried.member, carried.states
    added = next(s for s in grouped.stages if s.assign.tensor == stage.assign.tensor)
    names = FreeNames(grouped)
    read = next(r for r in added.reads if r.tensor == part.name)
    to = {a.name: i for a, i in zip(part.target.index, read.index, strict=True) if isinstance(a, Var)}
    places: dict[str, Int] = {n: i for n, i in to.items() if isinstance(i, Int)}
    total = substitute(times(part.target, state.deferred, read.dtype), places)

    def kept(statement: Statement) -> Statement:
        """A statement with the new terms."""
        if isinstance(statement, Loop | Guard):
            return replace(statement, body=tuple(map(kept, statement.body)))
        if statement is part.stage.assign:
            return replace(statement, op="+=", value=state.term)
        if statement is added.assign:
            return replace(statement, value=total)
        return statement

    name, target = stage.assign.tensor, Read(stage.assign.tensor, stage.assign.index, read.dtype)
    flag = names(f"{name}_as_written")
    asked = Read(flag, stage.assign.index, FLAG)
    body = [kept(s) for s in grouped.body]
    last = max(k for k, s in enumerate(body) if any(a.tensor == name for a in assigns(s)))
    steps = (
        _nest(stage, names, Assign(flag, stage.assign.index, "=", _not_finite(target))),
        _nest(stage, names, _as_written(stage, asked)),
    )
    shape = grouped.tensors[name].shape
    tensors = {**grouped.tensors, flag: Tensor(flag, FLAG, shape, intermediate=True)}
    return replace(grouped, body=(*body[: last + 1], *steps, *body[last + 1 :]), tensors=tensors)


def _as_written(stage: Stage, flag: Read) -> Statement:
    """The stage's element, where the flag is set."""
    assert stage.init is not None
    start = Assign(stage.assign.tensor, stage.assign.index, "=", stage.init)
    sums = nested(stage.reduction, under(stage.guards, stage.assign))
    return Guard(Comparison("!=", flag, Literal(0, FLAG)), (start, *sums))


def _nest(stage: Stage, names: FreeNames, body: Statement) -> Statement:
    """A statement in loops over copies of the stage's axes."""
    (body,) = nested(stage.spatial, body)
    return own_names(body, names, {a.name for a in stage.axes}, {})


def _not_finite(value: Value) -> Value:
    """1 where a value is infinite or no number, else 0."""
    finite = Comparison("<", Call("abs", (value,), value.dtype), Literal(float("inf"), value.dtype))
    return Select(finite, Literal(0, FLAG), Literal(1, FLAG), FLAG)
