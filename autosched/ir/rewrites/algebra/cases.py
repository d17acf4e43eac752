"""A value with choices as choice-free values, each under the conditions it is taken in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isinf

from autosched.ir.value import Condition, Literal, Select, Value, map_value

MOST = 16
"""Cases of a value at most."""


class TooManyCases(Exception):
    """A value of more than `MOST` cases."""


@dataclass(frozen=True)
class Case:
    """`value` holds no choice; it is meant where each of `when` is as stated."""

    when: tuple[tuple[Condition, bool], ...]
    value: Value


def cases_of(value: Value) -> tuple[Case, ...]:
    """All cases of a value, the first choice's first side first. Raises TooManyCases."""
    found = []
    for case in _split(Case((), value)):
        found.append(case)
        if len(found) > MOST:
            raise TooManyCases
    return tuple(found)


def is_infinite(value: Value) -> bool:
    """Whether it is the literal infinity, of either sign."""
    return isinstance(value, Literal) and isinstance(value.value, float) and isinf(value.value)


def _split(case: Case) -> Iterator[Case]:
    choice = _innermost(case.value)
    if choice is None:
        yield case
        return
    for side in (True, False):
        yield from _split(Case((*case.when, (choice.condition, side)), _taken(case.value, choice.condition, side)))


def _innermost(value: Value) -> Select | None:
    found: list[Select] = []

    def visit(node: Value) -> Value:
        if isinstance(node, Select):
            found.append(node)
        return node

    map_value(value, visit)
    return found[0] if found else None


def _taken(value: Value, condition: Condition, side: bool) -> Value:
    """The value where the condition is `side`."""

    def visit(node: Value) -> Value:
        if isinstance(node, Select) and node.condition == condition:
            return node.then if side else node.other
        return node

    return map_value(value, visit)
