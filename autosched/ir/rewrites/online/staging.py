"""`staged`: parts of terms that several members need, or one for each of its own axes, are computed once a block.

    O[e] += exp(S[q] - M) * V[q, e]        P[q] = exp(S[q] - M)
                                           O[e] += P[q] * V[q, e]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from autosched.ir.oracle.error_rules import TRANSCENDENTAL
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Condition,
    Literal,
    Logical,
    Select,
    Unary,
    Value,
    is_value,
    walk,
)
from autosched.ir.variables import condition_vars, value_vars
from autosched.logic import TRUE, Bool, all_of


@dataclass(frozen=True)
class Term:
    """A state's term with its member's guards and the names of its own axes."""

    value: Value
    guards: tuple[Condition, ...]
    extra: frozenset[str]


Found = tuple[Value, tuple[Condition, ...]]
"""A value that is computed once, and the guards around it."""


def staged(terms: Iterable[Term]) -> tuple[Found, ...]:
    """What is computed once a block, in the order of first use."""
    uses: Counter[Found] = Counter()
    repeated: set[Found] = set()
    for term in terms:
        for found in _parts(term):
            uses[found] += 1
            if term.extra:
                repeated.add(found)
    return tuple(f for f, n in uses.items() if n > 1 or f in repeated)


def filled(term: Term, places: Mapping[Found, Value]) -> Value:
    """The term with what is computed once read from where it is kept."""
    return _visited(term, lambda value, when: places.get((under_or_zero(value, when), term.guards)))


def _parts(term: Term) -> list[Found]:
    found: list[Found] = []

    def take(value: Value, when: tuple[Condition, ...]) -> Value | None:
        found.append((under_or_zero(value, when), term.guards))
        return value

    _visited(term, take)
    return found


def _visited(term: Term, take: Callable[[Value, tuple[Condition, ...]], Value | None]) -> Value:
    """Offer the largest parts that hold a function and none of the member's own axes, without the conversions around
    them, which another member may not have; `take` may give another value."""

    def visit(node: Value, when: tuple[Condition, ...]) -> Value:
        if not isinstance(node, Cast) and not value_vars(node) & term.extra and any(_costs(v) for v in walk(node)):
            return take(node, when) or node
        match node:
            case Arith(op, left, right, dtype):
                return Arith(op, visit(left, when), visit(right, when), dtype)
            case Unary(op, operand, dtype):
                return Unary(op, visit(operand, when), dtype)
            case Cast(operand, dtype, saturate):
                return Cast(visit(operand, when), dtype, saturate)
            case Call(function, args, dtype):
                return Call(function, tuple(visit(a, when) for a in args), dtype)
            case Select(condition, then, other, dtype) if not condition_vars(condition) & term.extra:
                opposite: Condition = ~condition if isinstance(condition, Bool) else Logical("not", (condition,))
                return Select(condition, visit(then, (*when, condition)), visit(other, (*when, opposite)), dtype)
        return node

    return visit(term.value, ())


def _costs(value: Value) -> bool:
    return isinstance(value, Call) and value.function in TRANSCENDENTAL


def under_or_zero(value: Value, when: tuple[Condition, ...]) -> Value:
    """The value where all conditions hold, else zero."""
    if not when:
        return value
    formulas = all_of(*(c for c in when if isinstance(c, Bool)))
    values: list[Condition] = [c for c in when if is_value(c)]
    parts = values if formulas == TRUE else [formulas, *values]
    condition = parts[0] if len(parts) == 1 else Logical("and", tuple(parts))
    return Select(condition, value, Literal(0.0, value.dtype), value.dtype)
