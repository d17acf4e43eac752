"""`Rewrite`: a proved step from a program to a program that computes the same.

A rewrite names what was done and carries the argument that it is right; tests run both programs. Adapters, splits of a
reduction and folded constants are of this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites import quotients, residues
from autosched.ir.value import Call, Cast, Value, map_value, substitute, substitute_condition, substitute_index
from autosched.logic import FALSE, TRUE, Const, Int
from autosched.logic.walk import substitute_int


@dataclass(frozen=True)
class Rewrite:
    """`after` computes what `before` does on all inputs, bit for bit, or sums the same floats in another order, within
    an error that the proof states; `proof` says why, a line an argument."""

    name: str
    before: Program
    after: Program
    proof: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: " + "; ".join(self.proof)


Rule = Callable[[Program], Rewrite | None]


def simplify(program: Program, kept: Collection[str] = ()) -> tuple[Program, tuple[Rewrite, ...]]:
    """Apply `RULES` until none applies; the program that is left and the steps that led there. Loops named in `kept`
    stay, whatever they run."""
    done: list[Rewrite] = []
    rules = [partial(drop_unit_axes, kept=kept) if rule is drop_unit_axes else rule for rule in RULES]
    while found := next((r for rule in rules if (r := rule(program)) is not None), None):
        done.append(found)
        program = found.after
    return program, tuple(done)


def drop_unit_axes(program: Program, kept: Collection[str] = ()) -> Rewrite | None:
    """Loops that run exactly once become their body, but for those `kept`. None where there is no such loop."""
    dropped: dict[str, Int] = {}

    def visit(body: tuple[Statement, ...], values: dict[str, Int]) -> tuple[Statement, ...]:
        result: list[Statement] = []
        for stmt in body:
            match stmt:
                case Loop(axis, inner):
                    lower, upper = substitute_int(axis.lower, values), substitute_int(axis.upper, values)
                    once = isinstance(lower, Const) and isinstance(upper, Const) and upper.value - lower.value == 1
                    if once and axis.name not in kept:
                        dropped[axis.name] = lower
                        result += visit(inner, values | {axis.name: lower})
                    else:
                        result.append(Loop(replace(axis, lower=lower, upper=upper), visit(inner, values)))
                case Guard(condition, inner):
                    held = substitute_condition(condition, values)
                    if held == TRUE:
                        result += visit(inner, values)
                    elif held != FALSE:
                        result.append(Guard(held, visit(inner, values)))
                case Assign():
                    index = tuple(substitute_index(i, values) for i in stmt.index)
                    result.append(replace(stmt, index=index, value=substitute(stmt.value, values)))
        return tuple(result)

    body = visit(program.body, {})
    if not dropped or not body:
        return None
    proof = tuple(f"{name} takes the value {value} only, so its loop is its body" for name, value in dropped.items())
    return Rewrite("drop unit axes", program, replace(program, body=body), proof)


def split_residues(program: Program) -> Rewrite | None:
    """See `autosched.ir.rewrites.residues`."""
    found = residues.split_residues(program)
    return None if found is None else Rewrite("split residues", program, *found)


def drop_rounding(program: Program) -> Rewrite | None:
    """What is rounded before it becomes an integer becomes it at once. None where nothing is."""
    dropped: list[str] = []

    def visit(stmt: Statement) -> Statement:
        if isinstance(stmt, Assign):
            return replace(stmt, value=rounded_once(stmt.value, dropped))
        return replace(stmt, body=tuple(visit(s) for s in stmt.body))

    body = tuple(visit(stmt) for stmt in program.body)
    if not dropped:
        return None
    proof = tuple(f"a conversion to {name} rounds to nearest even, as round does" for name in dict.fromkeys(dropped))
    return Rewrite("drop rounding", program, replace(program, body=body), proof)


def rounded_once(value: Value, dropped: list[str] | None = None) -> Value:
    """The same value where what is rounded before it becomes an integer becomes it at once; `dropped` takes the names
    of these integers' types."""

    def direct(node: Value) -> Value:
        match node:
            case Cast(Call("round", (operand,), _), dtype, _) if dtype.is_integer:
                if dropped is not None:
                    dropped.append(dtype.name)
                return replace(node, operand=operand)
        return node

    return map_value(value, direct)


def fold_quotients(program: Program) -> Rewrite | None:
    """See `autosched.ir.rewrites.quotients`."""
    found = quotients.fold_quotients(program)
    return None if found is None else Rewrite("fold quotients", program, *found)


RULES: tuple[Rule, ...] = (drop_unit_axes, fold_quotients, split_residues, drop_rounding)
"""What is applied to every program before it is planned."""
