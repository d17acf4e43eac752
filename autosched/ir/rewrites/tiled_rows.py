"""Stages that share an axis, a tile of it at a time.

    for i: H[i, :] = X[i, :] W1             for t: for i in tile: H[t * 32 + i, :] = X[t * 32 + i, :] W1
    for i: Y[i, :] = H[i, :] W2                    for i in tile: Y[t * 32 + i, :] = H[t * 32 + i, :] W2

Whether iterations of the shared loop are independent is the caller's to prove.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autosched.ir.nodes import Axis, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.value import substitute, substitute_condition, substitute_index
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int


def tiled_rows(program: Program, first: int, axes: Sequence[str], tile: int) -> Program:
    """The program with the top-level statements from number `first` on, one for each of `axes`, in tiles of these
    loops of theirs. What is left behind whole tiles is a tile of its own."""
    body = program.body[first : first + len(axes)]
    shared = _axis(body[0], axes[0])
    assert shared is not None
    names = FreeNames(program)
    count, rest = divmod(shared.extent, tile)
    name = names(f"{axes[0]}_tile")
    low = shared.lower
    inside = tuple(_rows(s, a, Var(name) * tile + low, tile, names) for s, a in zip(body, axes, strict=True))
    tiled: tuple[Statement, ...] = (Loop(Axis(name, Const(0), Const(count)), inside),)
    if rest:
        tiled += tuple(_rows(s, a, low + count * tile, rest, names) for s, a in zip(body, axes, strict=True))
    return replace(program, body=(*program.body[:first], *tiled, *program.body[first + len(axes) :]))


def _axis(statement: Statement, name: str) -> Axis | None:
    """The loop of this name, where it stands in a nest of loops around the statement's body."""
    while isinstance(statement, Loop):
        if statement.axis.name == name:
            return statement.axis
        if len(statement.body) != 1:
            return None
        (statement,) = statement.body
    return None


def _rows(statement: Statement, axis: str, first: Int, count: int, names: FreeNames) -> Statement:
    """A statement for so many rows from `first` on, its loops under new names."""

    def visit(stmt: Statement, to: Mapping[str, Int]) -> Statement:
        match stmt:
            case Loop(own, body):
                new = names(own.name)
                if own.name == axis:
                    inner = {**to, own.name: first + Var(new)}
                    return Loop(Axis(new, Const(0), Const(count)), tuple(visit(s, inner) for s in body))
                lower, upper = substitute_int(own.lower, to), substitute_int(own.upper, to)
                return Loop(Axis(new, lower, upper), tuple(visit(s, {**to, own.name: Var(new)}) for s in body))
            case Guard(condition, body):
                return Guard(substitute_condition(condition, to), tuple(visit(s, to) for s in body))
            case _:
                index = tuple(substitute_index(i, to) for i in stmt.index)
                return replace(stmt, index=index, value=substitute(stmt.value, to))

    return visit(statement, {})
