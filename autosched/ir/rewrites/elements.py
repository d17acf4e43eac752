"""The elements that statements read and write."""

from __future__ import annotations

from collections.abc import Iterator

from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.prepared import assigns
from autosched.ir.value import Read, is_value, reads


def elements_read(body: tuple[Statement, ...]) -> Iterator[Read]:
    """Every element that statements read: in values, subscripts and guards."""
    for stmt in body:
        match stmt:
            case Assign():
                for value in (stmt.value, *filter(is_value, stmt.index)):
                    yield from reads(value)
            case Guard(condition, inner):
                yield from (*(reads(condition) if is_value(condition) else ()), *elements_read(inner))
            case Loop(_, inner):
                yield from elements_read(inner)


def elements_written(body: tuple[Statement, ...]) -> Iterator[Read]:
    """Every element that statements write."""
    for assign in (a for stmt in body for a in assigns(stmt)):
        yield Read(assign.tensor, assign.index, assign.value.dtype)
