"""Axes with all their bounds known: what a nest runs over, and what cuts its corners out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autosched.ir.nodes import Axis
from autosched.ir.oracle.distance import Ranges
from autosched.ir.oracle.nests import LoopNest
from autosched.ir.value import Condition
from autosched.logic import Var, all_of, interval
from autosched.logic.expr import compare


@dataclass(frozen=True)
class Span:
    """An axis with its first value and count, over everything around it."""

    name: str
    first: int
    count: int


def spans(nest: LoopNest, outer: Ranges) -> tuple[list[Span], list[Condition]]:
    """The nest's axes over their whole ranges, and the conditions that cut out what really runs, outermost first."""
    known = dict(outer)
    found: list[Span] = []
    conditions: list[Condition] = []
    for level in nest.levels:
        if not isinstance(level, Axis):
            conditions.append(level)
            continue
        low, high = interval(level.lower, known), interval(level.upper, known)
        found.append(Span(level.name, low[0], high[1] - low[0]))
        known[level.name] = (low[0], max(low[0], high[1] - 1))
        cuts = [compare("<=", level.lower, Var(level.name))] if low[0] != low[1] else []
        cuts += [compare("<", Var(level.name), level.upper)] if high[0] != high[1] else []
        if cuts:
            conditions.append(all_of(*cuts))
    return found, conditions


def points(axes: list[Span]) -> Iterator[dict[str, int]]:
    """All combinations of values, in program order."""
    if not axes:
        yield {}
        return
    head, rest = axes[0], axes[1:]
    for k in range(head.first, head.first + head.count):
        for tail in points(rest):
            yield {head.name: k, **tail}
