"""What a row decides about a scalar part, and small pieces that its loops are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.tree.kernel import Assign, For, If, Lane, Stmt
from autosched.ir.nodes import Stage
from autosched.ir.value import Select, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, free_vars, minimum
from autosched.logic.walk import substitute_bool
from autosched.tiling.plans.plan import ScalarPart
from autosched.tiling.steps.scalar import handles
from autosched.tiling.steps.scalar.scalar_steps import ACROSS, lanes_of

Ats: TypeAlias = tuple[dict[str, Int], ...]
"""Where the axes are, for each copy of an unrolled body."""
THREAD = "thread"


@dataclass(frozen=True)
class Shape:
    """`width` elements of a vector, `unroll` vectors at once, `rows` of a reduction at once, `across`: whether the
    lanes hold partial results, `block`: iterations of a reduction outside the vectors, `formulas`: in place of the
    library, `stream`: vectors of results go past the caches."""

    width: int = 1
    unroll: int = 1
    rows: int = 1
    across: bool = False
    block: int = 0
    threads: int = 1
    formulas: bool = False
    stream: bool = False

    @property
    def wide(self) -> bool:
        return self.width > 1

    @property
    def lane(self) -> Lane:
        return Lane(LANE, self.width)


def shape_of(part: ScalarPart, values: Mapping[str, int]) -> Shape:
    """The decisions of one row about a part."""
    names = part.names
    width = handles.VECTOR.of(names, values)
    return Shape(
        width,
        handles.UNROLL.of(names, values),
        handles.ROWS.of(names, values),
        width > 1 and lanes_of(part, values) == ACROSS,
        handles.BLOCK.of(names, values),
        handles.THREADS.of(names, values),
        handles.MATH.of(names, values) == handles.FORMULAS,
        part.nontemporal is not None and handles.STORES.of(names, values) == handles.PAST,
    )


def shared_out(loop: For, threads: int, behind: tuple[Stmt, ...] = ()) -> tuple[Stmt, ...]:
    """The loop in equal runs, one a thread: a thread calls its body once, and what is the same throughout is computed
    once. The loop as it is for one thread. `behind`: what each thread does at its end."""
    if threads == 1:
        return (loop,)
    if not isinstance(loop.lower, Const) or not isinstance(loop.upper, Const):
        return (replace(loop, kind="parallel", body=(*loop.body, *behind)),)
    trips = -(-(loop.upper.value - loop.lower.value) // loop.step)
    if trips <= 0:
        return (loop,)
    each = -(-trips // threads) * loop.step
    first = loop.lower + Var(THREAD) * each
    last = minimum(first + each, loop.upper)
    return (
        For(
            THREAD,
            Const(0),
            Const(-(-trips * loop.step // each)),
            (replace(loop, lower=first, upper=last), *behind),
            "parallel",
        ),
    )


def guard_formula(stage: Stage, at: Mapping[str, Int]) -> Bool:
    """The stage's guards over axes, placed."""
    return all_of(*(substitute_bool(g, at) for g in stage.guards if isinstance(g, Bool)))


def under(condition: Bool, stmt: Assign, otherwise: Value | None = None) -> tuple[Stmt, ...]:
    """The statement where the guard holds. A guard that differs between lanes masks the store; a register keeps its
    other lanes by an explicit choice, since a masked register assignment clears them."""
    if condition == TRUE:
        return (stmt,)
    if stmt.lane is None or LANE not in free_vars(condition):
        return (If(condition, (stmt,)),)
    if otherwise is not None:
        return (replace(stmt, value=Select(condition, stmt.value, otherwise, stmt.value.dtype)),)
    return (replace(stmt, valid=all_of(stmt.valid, condition)),)


def masked(body: tuple[Stmt, ...], valid: Bool) -> tuple[Stmt, ...]:
    """Every vector assignment of a partial vector masked."""
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Assign() if stmt.lane is not None:
                result.append(replace(stmt, valid=all_of(valid, stmt.valid)))
            case For() | If():
                result.append(replace(stmt, body=masked(stmt.body, valid)))
            case _:
                result.append(stmt)
    return tuple(result)
