"""`mask to bounds`: a mask that is monotone in a loop's axis bounds the loop. Exact: what is left out changes nothing.

    for j in range(l):                           for j in range(i + 1):
        if j <= i:                                   O[i] += P[i, j]
            O[i] += P[i, j]

A guard says so itself. A choice says so where its other side is what the reduction starts from: minus infinity of a
maximum, zero of a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autosched.ir.nodes import Assign, Guard, Loop, Stage, Statement, is_zero
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.bounds import NarrowedAxis, bounded, constant_ranges
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Literal, Select, Value, value_where
from autosched.logic import Bool, all_of, conjuncts


def mask_bounds(program: Program) -> Iterator[RewriteVerdict]:
    """Every loop that can be bounded by a mask, each on its own."""
    for stage in program.stages:
        for depth in range(len(stage.axes)):
            found = _bounded(program, stage, depth)
            if found is not None:
                bounds, after = found
                name, proof = stage.axes[depth].name, (bounds.lemma,)
                yield RewriteVerdict("mask to bounds", name, (stage.name,), "bitwise", obligations=proof, after=after)


def _bounded(program: Program, stage: Stage, depth: int) -> tuple[NarrowedAxis, Program] | None:
    axis = stage.axes[depth]
    outer = stage.axes[:depth]
    guards = [p for g in stage.guards if isinstance(g, Bool) for p in conjuncts(g)]
    mask = _mask(stage)
    condition = all_of(*guards, *mask)
    if not guards and not mask:
        return None
    known = frozenset(a.name for a in outer) | frozenset(program.symbolic)
    ranges = constant_ranges(outer) | dict(program.symbolic)
    found = bounded(axis, condition, known, ranges)
    if found is None or found.axis == axis or not _alone(program, stage, axis.name):
        return None
    true = frozenset(found.taken)
    body = tuple(_rewritten(s, stage.assign, found, true) for s in program.body)
    return found, replace(program, body=body)


def _mask(stage: Stage) -> list[Bool]:
    """What the term's choice says, if its other side changes nothing."""
    match stage.assign.value:
        case Select(Bool() as condition, _, other, _) if _changes_nothing(stage, other):
            return list(conjuncts(condition))
        case Select(Bool() as condition, then, _, _) if _changes_nothing(stage, then):
            return list(conjuncts(~condition))
    return []


def _changes_nothing(stage: Stage, value: Value) -> bool:
    """Whether a term leaves what is reduced as it is, bit for bit: a sum that starts from 0 is never -0."""
    op = stage.assign.op
    if op == "+=":
        return is_zero(value) and stage.init == Literal(0.0 if value.dtype.is_float else 0, value.dtype)
    if op in ("max=", "min=") and isinstance(value, Literal) and is_infinite(value):
        return (value.value < 0) == (op == "max=")
    return False


def _alone(program: Program, stage: Stage, name: str) -> bool:
    """Whether nothing else is in the loop."""
    return all(s is stage or name not in {a.name for a in s.axes} for s in program.stages) and not (
        stage.init is not None and name in {a.name for a in stage.spatial}
    )


def _rewritten(statement: Statement, target: Assign, found: NarrowedAxis, true: frozenset[Bool]) -> Statement:
    match statement:
        case Loop(axis, body) if any(a is target for a in assigns(statement)):
            inner = tuple(s for x in body for s in _unguarded(_rewritten(x, target, found, true), target, true))
            return Loop(found.axis if axis.name == found.axis.name else axis, inner)
        case Guard(condition, body) if any(a is target for a in assigns(statement)):
            return Guard(condition, tuple(_rewritten(x, target, found, true) for x in body))
    return statement


def _unguarded(statement: Statement, target: Assign, true: frozenset[Bool]) -> tuple[Statement, ...]:
    """Without the parts of guards and of the term's choice that the bounds say."""
    match statement:
        case Guard(Bool() as condition, body) if any(a is target for a in assigns(statement)):
            left = [p for p in conjuncts(condition) if p not in true]
            inner = tuple(s for x in body for s in _unguarded(x, target, true))
            return (Guard(all_of(*left), inner),) if left else inner
        case Assign() if statement is target:
            return (replace(statement, value=value_where(statement.value, true)),)
    return (statement,)
