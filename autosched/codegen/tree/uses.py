"""Which buffers and functions statements use."""

from __future__ import annotations

from collections.abc import Iterator

from autosched.codegen.tree.kernel import (
    Assign,
    Branch,
    Chosen,
    For,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Prefetch,
    Stmt,
    TileCopy,
    bodies,
)
from autosched.ir.value import Call, Index, Read, Scalar, Value, reads, walk
from autosched.ir.variables import index_vars, value_vars
from autosched.logic import free_vars


def places(stmt: Stmt) -> list[tuple[str, tuple[Index, ...]]]:
    """The elements that an assignment, a call, a branch's condition or a choice touches: of which buffer, and where;
    none of any other statement."""
    match stmt:
        case Assign():
            return [(stmt.buffer, stmt.index), *((r.tensor, r.index) for r in reads(stmt.value))]
        case Branch():
            return [(r.tensor, r.index) for r in reads(stmt.condition)]
        case Chosen():
            return [(r.tensor, r.index) for r in reads(stmt.value)]
        case IntrinsicCall():
            return [(ref.buffer, ref.index) for ref in stmt.operands.values()]
        case _:
            return []


def used_variables(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Variables in bounds, conditions, subscripts and values of loops, branches, assignments and calls: those of loops
    inside, too."""
    found: frozenset[str] = frozenset()
    for stmt in _all(body):
        for _, index in places(stmt):
            found |= index_vars(index)
        match stmt:
            case For():
                found |= free_vars(stmt.lower) | free_vars(stmt.upper)
            case If():
                found |= free_vars(stmt.condition)
            case Branch():
                found |= value_vars(stmt.condition)
            case Chosen():
                found |= value_vars(stmt.value)
            case Assign():
                found |= free_vars(stmt.valid) | value_vars(stmt.value)
            case Prefetch():
                found |= index_vars(stmt.index)
    return found


def used_buffers(body: tuple[Stmt, ...]) -> set[str]:
    """Names of all buffers that the statements touch."""
    found: set[str] = set()
    for stmt in _all(body):
        found.update([name for name, _ in places(stmt)])
        match stmt:
            case Prefetch():
                found.add(stmt.buffer)
            case GuardedDispatch():
                found.update(stmt.checks)
            case TileCopy():
                found.update((stmt.buffer, stmt.map.buffer))
    return found


def read_buffers(body: tuple[Stmt, ...]) -> set[str]:
    """Names of the buffers that values of assignments, conditions and calls read."""
    found = {v.tensor for v in _values(body) if isinstance(v, Read)}
    calls = (s for s in _all(body) if isinstance(s, IntrinsicCall))
    return found | {ref.buffer for call in calls for ref in call.operands.values()}


def called_functions(body: tuple[Stmt, ...]) -> set[str]:
    """Functions that values call."""
    return {v.function for v in _values(body) if isinstance(v, Call)}


def used_scalars(body: tuple[Stmt, ...]) -> set[str]:
    """Run-time scalars that values name."""
    return {v.name for v in _values(body) if isinstance(v, Scalar)}


def _values(body: tuple[Stmt, ...]) -> Iterator[Value]:
    for stmt in _all(body):
        if isinstance(stmt, Assign | Chosen):
            yield from walk(stmt.value)
        elif isinstance(stmt, Branch):
            yield from walk(stmt.condition)


def _all(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements of a body, in any order, those of a body that stands in several places once."""
    waiting, seen = [body], {id(body)}
    while waiting:
        for stmt in waiting.pop():
            yield stmt
            for inner in bodies(stmt):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    waiting.append(inner)
