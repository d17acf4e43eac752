"""Indices stay inside their tensors: intervals first, z3 where they do not decide, guards taken into account."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from autosched.ir.nodes import Tensor
from autosched.ir.parser.scope import Scope
from autosched.ir.value import Condition, Index
from autosched.logic import And, Bool, Compare, Const, Int, all_of, free_vars, interval, to_z3
from autosched.logic.solver import proving, z3

_TIMEOUT_MS = 500
_PROOFS = 1000
"""Distinct accesses of one program that may need a proof; intervals settle all others."""
_GIVEN_UP = 3
"""After so many timeouts (products of symbolic sizes) z3 is not asked again; the oracle checks what it reaches."""


def span(scope: Scope, node: Int) -> tuple[int, int]:
    """Inclusive bounds of an integer expression here."""
    try:
        return interval(node, scope.ranges)
    except (ValueError, ZeroDivisionError):
        return -(2**62), 2**62


@contextmanager
def under(scope: Scope, condition: Condition) -> Iterator[None]:
    """While open, `condition` is known to hold."""
    scope.conditions.append(condition)
    try:
        yield
    finally:
        scope.conditions.pop()


def simplified(scope: Scope, test: Condition) -> Condition:
    """A guard without the comparisons that always hold: `0 <= x + r` says nothing where x and r start from 0."""
    if not isinstance(test, Bool):
        return test
    parts = test.parts if isinstance(test, And) else (test,)
    return all_of(*(p for p in parts if not _always(scope, p)))


def _always(scope: Scope, test: Bool) -> bool:
    if not isinstance(test, Compare):
        return False
    low, high = span(scope, test.right - test.left)
    return {"<": low > 0, "<=": low >= 0, ">": high < 0, ">=": high <= 0}.get(test.op, False)


def check(scope: Scope, node: ast.AST, tensor: Tensor, index: tuple[Index, ...]) -> None:
    """ProgramError where some iteration that the guards let through reads or writes outside `tensor`.

    Data-dependent subscripts are checked at run time; below a data-dependent guard only constants are refused.
    """
    for d, (part, size) in enumerate(zip(index, tensor.shape, strict=True)):
        if not isinstance(part, Int):
            continue
        low, high = span(scope, part)
        if low >= 0 and high < span(scope, size)[0]:
            continue
        if not all(isinstance(c, Bool) for c in scope.conditions) and not isinstance(part, Const):
            continue
        found = _cached(scope, node, part, size)
        if found is not None:
            where = ", ".join(f"{k} = {v}" for k, v in found.items() if k != "")
            raise scope.source.error(
                node,
                f"dimension {d} of {tensor.name} has extent {size}, and the index {part} is {found['']}"
                + (f" at {where}" if where else ""),
                "change the loop's range or the shape, or guard the access with if",
            )


def _cached(scope: Scope, node: ast.AST, part: Int, size: Int) -> dict[str, int] | None:
    """`_outside`, asked once for each question, and a bounded number of times."""
    facts = tuple(c for c in scope.conditions if isinstance(c, Bool))
    question = (part, size, facts, tuple(scope.axes.values()))
    if question not in scope.proofs:
        if len(scope.proofs) >= _PROOFS:
            raise scope.source.error(node, f"more than {_PROOFS} different accesses need a proof that they stay inside")
        gave_up = list(scope.proofs.values()).count("unknown") >= _GIVEN_UP
        scope.proofs[question] = "unknown" if gave_up else _outside(scope, part, size)
    found = scope.proofs[question]
    return found if isinstance(found, dict) else None


@proving
def _outside(scope: Scope, part: Int, size: Int) -> dict[str, int] | str:
    """A point of the loops at which `part` leaves 0 … size - 1, else "inside" or "unknown". The index's value is under
    the empty name."""
    names: set[str] = set(scope.ranges)
    env = {n: z3.Int(n) for n in names}
    solver = z3.Solver()
    solver.set("timeout", _TIMEOUT_MS)
    for axis in scope.axes.values():
        solver.add(env[axis.name] >= to_z3(axis.lower, env), env[axis.name] < to_z3(axis.upper, env))
    axes = {a.name for a in scope.axes.values()}
    for name in names - axes:
        low, high = scope.ranges[name]
        solver.add(env[name] >= low, env[name] <= high)
    for condition in scope.conditions:
        if isinstance(condition, Bool):
            solver.add(to_z3(condition, env))
    value = to_z3(part, env)
    solver.add(z3.Or(value < 0, value >= to_z3(size, env)))
    verdict = solver.check()
    if verdict != z3.sat:
        return "inside" if verdict == z3.unsat else "unknown"
    model = solver.model()
    used = sorted(free_vars(part) | free_vars(size))
    found = {n: model.eval(env[n], model_completion=True).as_long() for n in used}
    return {"": model.eval(value, model_completion=True).as_long(), **found}
