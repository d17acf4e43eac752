"""Lowering of literal parts: the program's own loops, guards and assignments, in their own order."""

from __future__ import annotations

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.tree.kernel import Assign, Branch, For, If, Stmt
from autosched.codegen.tree.rename import place, place_condition, place_index
from autosched.codegen.tree.update import combine, guarded
from autosched.ir.nodes import Assign as Assignment
from autosched.ir.nodes import Guard, Loop, Statement
from autosched.ir.value import Condition, Read, Value, reads
from autosched.logic import Bool, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.plan import LiteralPart


def lower_literal(part: LiteralPart, ctx: Context) -> tuple[Stmt, ...]:
    return tuple(s for stmt in part.body for s in _statement(stmt, {}, (), ctx))


def _statement(stmt: Statement, at: dict[str, Int], guards: tuple[Condition, ...], ctx: Context) -> tuple[Stmt, ...]:
    match stmt:
        case Loop(axis, body):
            var = Var(identifier(axis.name))
            inner = at | {axis.name: var}
            lower, upper = substitute_int(axis.lower, at), substitute_int(axis.upper, at)
            return (For(var.name, lower, upper, tuple(s for b in body for s in _statement(b, inner, guards, ctx))),)
        case Guard(condition, body):
            placed = place_condition(condition, at)
            if isinstance(placed, Bool):
                return (If(placed, tuple(s for b in body for s in _statement(b, at, guards, ctx))),)
            if any(isinstance(b, Loop) for b in body):  # asked once; else a choice in each assignment costs less
                _known_tensors(placed, ctx)
                inside = tuple(s for b in body for s in _statement(b, at, guards, ctx))
                return (Branch(placed, inside),)
            return tuple(s for b in body for s in _statement(b, at, (*guards, placed), ctx))
        case Assignment():
            ctx.tensor(stmt.tensor)
            value = place(stmt.value, at)
            _known_tensors(value, ctx)
            for guard in guards:
                if not isinstance(guard, Bool):
                    _known_tensors(guard, ctx)
            index = place_index(stmt.index, at)
            old = Read(stmt.tensor, index, stmt.value.dtype)
            return (Assign(stmt.tensor, index, guarded(guards, combine(stmt.op, old, value), old)),)


def _known_tensors(value: Value, ctx: Context) -> None:
    for read in reads(value):
        ctx.tensor(read.tensor)
