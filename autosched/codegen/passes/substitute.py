"""Substitution of loop variables in statements, for loops that run once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCalls,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    BarrierWait,
    Branch,
    Chosen,
    Comment,
    Configure,
    For,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Prefetch,
    RegisterRef,
    Stmt,
    StoreFence,
    TileCopy,
    WaitCalls,
    WaitCopies,
    WarpSpecialize,
    WorkerBarrier,
    bodies,
)
from autosched.codegen.tree.rename import place
from autosched.logic import FALSE, TRUE, Int
from autosched.logic.walk import free_vars, substitute_bool, substitute_int


def bind(body: tuple[Stmt, ...], values: Mapping[str, Int]) -> tuple[Stmt, ...]:
    """`body` with variables replaced; branches decided by that are resolved."""
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For():
                lower, upper = substitute_int(stmt.lower, values), substitute_int(stmt.upper, values)
                result.append(replace(stmt, lower=lower, upper=upper, body=bind(stmt.body, values)))
            case If():
                condition = substitute_bool(stmt.condition, values)
                inner = bind(stmt.body, values)
                if condition == TRUE:
                    result += inner
                elif condition != FALSE:
                    result.append(If(condition, inner))
            case Branch():
                result.append(Branch(place(stmt.condition, values), bind(stmt.body, values)))
            case Chosen():
                result.append(replace(stmt, value=place(stmt.value, values), body=bind(stmt.body, values)))
            case GuardedDispatch():
                result.append(replace(stmt, body=bind(stmt.body, values), fallback=bind(stmt.fallback, values)))
            case Assign():
                index = tuple(substitute_int(i, values) for i in stmt.index)
                valid = substitute_bool(stmt.valid, values)
                result.append(replace(stmt, index=index, value=place(stmt.value, values), valid=valid))
            case IntrinsicCall():
                operands = {k: _bound(r, values) for k, r in stmt.operands.items()}
                result.append(IntrinsicCall(stmt.intrinsic, operands, substitute_bool(stmt.zero_init, values)))
            case Prefetch():
                result.append(replace(stmt, index=tuple(substitute_int(i, values) for i in stmt.index)))
            case AsyncCopies():
                slot, boxes = substitute_int(stmt.slot, values), bind(stmt.boxes, values)
                result.append(replace(stmt, body=bind(stmt.body, values), slot=slot, boxes=boxes))
            case BarrierArrive():
                result.append(replace(stmt, slot=substitute_int(stmt.slot, values)))
            case BarrierWait():
                slot, times = substitute_int(stmt.slot, values), substitute_int(stmt.times, values)
                result.append(replace(stmt, slot=slot, times=times, phase=substitute_int(stmt.phase, values)))
            case TileCopy():
                at = tuple(substitute_int(c, values) for c in stmt.coordinates)
                index = tuple(substitute_int(i, values) for i in stmt.index)
                inside = tuple(substitute_int(i, values) for i in stmt.inside)
                first = substitute_int(stmt.first, values)
                result.append(replace(stmt, coordinates=at, index=index, inside=inside, first=first))
            case AsyncCalls():
                result.append(AsyncCalls(bind(stmt.body, values)))
            case WarpSpecialize():
                result.append(replace(stmt, bodies=tuple(bind(body, values) for body in stmt.bodies)))
            case WaitCopies() | WaitCalls() | AsyncProxyFence() | WorkerBarrier() | StoreFence():
                result.append(stmt)
            case Comment() | Configure():
                result.append(stmt)
    return tuple(result)


def decides(var: str, body: tuple[Stmt, ...]) -> bool:
    """Whether the variable says what of the body is done: bounds, branches, lanes that are valid."""
    for stmt in body:
        match stmt:
            case For():
                asked = free_vars(stmt.lower) | free_vars(stmt.upper)
            case If():
                asked = free_vars(stmt.condition)
            case Assign():
                asked = free_vars(stmt.valid)
            case _:
                asked = frozenset()
        if var in asked or any(decides(var, inner) for inner in bodies(stmt)):
            return True
    return False


def _bound(ref: RegisterRef, values: Mapping[str, Int]) -> RegisterRef:
    found = ref.descriptor
    if found is not None:
        found = replace(found, start=substitute_int(found.start, values))
    index = tuple(substitute_int(i, values) for i in ref.index)
    return replace(ref, index=index, descriptor=found, holds=place(ref.holds, values) if ref.holds else None)
