"""`factor_by_group`: a sum of groups (`grouped.sum_by_group`) whose factor is applied once a group.

    for g: for i: for q: G[g, i] += A[i, g * 32 + q]
    for i: for g: Y[i] += G[g, i] * D[g]
    for i: if Y[i] is not finite: for k: Y[i] += A[i, k] * D[k // 32]

One look at the result is enough: a group whose sum is infinite or no number, or whose product is, makes the result so.
No factor hides it, since infinity times zero is no number, and a sum does not lose it.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Assign, Guard, Loop, Stage, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.sums import RealSum
from autosched.ir.rewrites.algebra.text import times, value_of
from autosched.ir.rewrites.factors.distribute import own_names
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.rewrites.online.states import MemberStates
from autosched.ir.value import (
    Arith,
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


def factor_by_group(stage: Stage, grouped: Program, carried: MemberStates, checked: bool = True) -> Program:
    """`grouped` with the term of `carried`, the sum of a group, in place of what it adds up, and its factor in the sum
    of the groups. `stage` is what the program adds up as written: it is computed where that sum is not finite, if that
    is to be `checked`. Raises NoText for a factor that has no text."""
    part, (state,) = carried.member, carried.states
    added = next(s for s in grouped.stages if s.assign.tensor == stage.assign.tensor)
    names = FreeNames(grouped)
    read = next(r for r in added.reads if r.tensor == part.name)
    to = {a.name: i for a, i in zip(part.target.index, read.index, strict=True) if isinstance(a, Var)}
    places: dict[str, Int] = {n: i for n, i in to.items() if isinstance(i, Int)}
    whole = times if checked else _times_all  # a product of factors may overflow or vanish by itself
    total = substitute(whole(part.target, state.deferred, read.dtype), places)

    def kept(statement: Statement) -> Statement:
        """A statement with the new terms."""
        if isinstance(statement, Loop | Guard):
            return replace(statement, body=tuple(map(kept, statement.body)))
        if statement is part.stage.assign:
            return replace(statement, op="+=", value=state.term)
        if statement is added.assign:
            return replace(statement, value=total)
        return statement

    body = [kept(s) for s in grouped.body]
    if not checked:
        return replace(grouped, body=tuple(body))
    name, target = stage.assign.tensor, Read(stage.assign.tensor, stage.assign.index, read.dtype)
    flag = names(f"{name}_as_written")
    asked = Read(flag, stage.assign.index, FLAG)
    last = max(k for k, s in enumerate(body) if any(a.tensor == name for a in assigns(s)))
    steps = (
        _nest(stage, names, Assign(flag, stage.assign.index, "=", _if_finite(target, _flag(0), _flag(1)))),
        _nest(stage, names, _begun(stage, target)),
        _nest(stage, names, _as_written(stage, asked)),
    )
    shape = grouped.tensors[name].shape
    tensors = {**grouped.tensors, flag: Tensor(flag, FLAG, shape, intermediate=True)}
    return replace(grouped, body=(*body[: last + 1], *steps, *body[last + 1 :]), tensors=tensors)


def _times_all(value: Value, factor: RealSum, dtype: DType) -> Value:
    """A value times a factor that is computed first: the same for many values, it is computed once."""
    return Arith("*", value, value_of(factor, dtype), dtype)


def _begun(stage: Stage, target: Read) -> Statement:
    """The stage's element with what its sum begins with where it is not finite: whoever has just summed it does that in
    passing, as no flag is read."""
    assert stage.init is not None
    return Assign(target.tensor, target.index, "=", _if_finite(target, target, stage.init))


def _as_written(stage: Stage, flag: Read) -> Statement:
    """The stage's sum, where the flag is set."""
    (sums,) = nested(stage.reduction, under(stage.guards, stage.assign))
    return Guard(Comparison("!=", flag, _flag(0)), (sums,))


def _nest(stage: Stage, names: FreeNames, body: Statement) -> Statement:
    """A statement in loops over copies of the stage's axes."""
    (body,) = nested(stage.spatial, body)
    return own_names(body, names, {a.name for a in stage.axes}, {})


def _if_finite(value: Value, finite: Value, otherwise: Value) -> Value:
    """One value where another is neither infinite nor NaN, else the other one."""
    holds = Comparison("<", Call("abs", (value,), value.dtype), Literal(float("inf"), value.dtype))
    return Select(holds, finite, otherwise, finite.dtype)


def _flag(value: int) -> Literal:
    return Literal(value, FLAG)
