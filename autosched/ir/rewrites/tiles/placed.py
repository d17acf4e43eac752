"""A stage's statement for some of its rows, with what it hands on in buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from autosched.ir.nodes import Axis, Guard, Loop, Statement
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.value import (
    Index,
    Read,
    Value,
    is_value,
    map_value,
    substitute,
    substitute_condition,
    substitute_index,
)
from autosched.logic import Const, Int, Var, affine
from autosched.logic.walk import substitute_int


@dataclass(frozen=True)
class RowPlace:
    """Where rows of an intermediate lie: in the tensor `name`, whose first subscripts are `tile`; row `start` of the
    intermediate is row 0 there."""

    name: str
    dimension: int
    start: Int
    tile: tuple[Int, ...] = ()

    def of(self, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """Where an element lies."""
        row = index[self.dimension]
        form = affine(row - self.start) if isinstance(row, Int) else None
        assert form is not None
        return (*self.tile, *index[: self.dimension], form.expression, *index[self.dimension + 1 :])


def rows_of(statement: Statement, axis: str, first: Int, count: int, names: FreeNames) -> Statement:
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


class ElementPlace(Protocol):
    """Where an intermediate's elements lie."""

    @property
    def name(self) -> str:
        """The tensor."""

    def of(self, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """The subscripts there of an element."""


def placed(statement: Statement, places: Mapping[str, ElementPlace]) -> Statement:
    """The statement with intermediates where these places say."""

    def read(value: Value) -> Value:
        if not isinstance(value, Read) or value.tensor not in places:
            return value
        place = places[value.tensor]
        return replace(value, tensor=place.name, index=place.of(value.index))

    match statement:
        case Loop(axis, body):
            return Loop(axis, tuple(placed(s, places) for s in body))
        case Guard(condition, body):
            held = map_value(condition, read) if is_value(condition) else condition
            return Guard(held, tuple(placed(s, places) for s in body))
        case _:
            index = tuple(i if isinstance(i, Int) else map_value(i, read) for i in statement.index)
            name = statement.tensor
            if name in places:
                name, index = places[name].name, places[name].of(index)
            return replace(statement, tensor=name, index=index, value=map_value(statement.value, read))
