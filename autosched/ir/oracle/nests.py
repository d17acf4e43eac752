"""The order of execution: a statement tree split into nests of one assignment each, where that is provably the same.

`for i: S; T` may run as `for i: S` and then `for i: T` unless T in one iteration meets S in a later one. What cannot be
split is a `Serial` loop: its iterations run in order, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement
from autosched.ir.oracle.distance import Ranges, distances
from autosched.ir.stages import condition_reads
from autosched.ir.value import Condition, Index, is_value, reads
from autosched.logic import Int, Var, free_vars, interval


@dataclass(frozen=True)
class LoopNest:
    """One assignment below loops and conditions, outermost first."""

    levels: tuple[Axis | Condition, ...]
    assign: Assign
    free: frozenset[str] = frozenset()
    """Axes that may run all at once (`vector_axes`); filled in by `plan`."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(x for x in self.levels if isinstance(x, Axis))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(x for x in self.levels if not isinstance(x, Axis))


@dataclass(frozen=True)
class Serial:
    """A loop (or a guard, with `level` a condition) whose body runs whole before the next iteration."""

    level: Axis | Condition
    body: tuple[Unit, ...]


Unit: TypeAlias = LoopNest | Serial


@dataclass(frozen=True)
class Access:
    tensor: str
    index: tuple[Index, ...]
    written: bool


def axis_ranges(
    body: tuple[Statement, ...], outer: dict[str, tuple[int, int]] | None = None
) -> dict[str, tuple[int, int]]:
    """Inclusive bounds of every axis, over all values of the axes around it."""
    found = dict(outer or {})
    for node in body:
        if isinstance(node, Loop):
            low, high = interval(node.axis.lower, found)[0], interval(node.axis.upper, found)[1] - 1
            found[node.axis.name] = (low, max(low, high))
        if isinstance(node, Loop | Guard):
            found |= axis_ranges(node.body, found)
    return found


def plan(body: tuple[Statement, ...]) -> tuple[Unit, ...]:
    """How to run a program's body whose sizes are all known."""
    ranges = axis_ranges(body)
    return tuple(_finished(u, ranges, frozenset()) for u in split(body, ranges))


def along_rows(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements in that order, and the last axis of what each of them writes innermost where its iterations may
    run all at once: a sum in memory's order, each element's terms as before."""
    return tuple(map(_statement, plan(body)))


def _statement(unit: Unit) -> Statement:
    if isinstance(unit, Serial):
        return _wrapped(unit.level, tuple(map(_statement, unit.body)))
    levels, last = list(unit.levels), unit.assign.index[-1] if unit.assign.index else None
    if isinstance(last, Var) and last.name in unit.free and not unit.conditions:
        axis = next(a for a in unit.axes if a.name == last.name)
        if not any(axis.name in free_vars(a.lower) | free_vars(a.upper) for a in unit.axes):
            levels = [*(a for a in levels if a is not axis), axis]
    found: Statement = unit.assign
    for level in reversed(levels):
        found = _wrapped(level, (found,))
    return found


def _wrapped(level: Axis | Condition, body: tuple[Statement, ...]) -> Statement:
    return Loop(level, body) if isinstance(level, Axis) else Guard(level, body)


def _finished(unit: Unit, ranges: Ranges, outer: frozenset[str]) -> Unit:
    if isinstance(unit, LoopNest):
        return replace(unit, free=vector_axes(unit, ranges, outer))
    inner = outer | {unit.level.name} if isinstance(unit.level, Axis) else outer
    return replace(unit, body=tuple(_finished(u, ranges, inner) for u in unit.body))


def split(body: tuple[Statement, ...], ranges: Ranges, outer: frozenset[str] = frozenset()) -> tuple[Unit, ...]:
    """The units of a block, in an order of execution that computes the same."""
    return tuple(u for node in body for u in _units(node, ranges, outer))


def _units(node: Statement, ranges: Ranges, outer: frozenset[str]) -> tuple[Unit, ...]:
    match node:
        case Assign():
            return (LoopNest((), node),)
        case Guard(condition, body):
            units = split(body, ranges, outer)
            read = {r.tensor for r in condition_reads((condition,))}
            changed = {a.tensor for u in units[:-1] for a in accesses(u) if a.written}
            return (Serial(condition, units),) if read & changed else tuple(_wrap(condition, u) for u in units)
        case Loop(axis, body):
            units = split(body, ranges, outer | {axis.name})
            separable = all(
                _separable(axis.name, units[i], units[j], ranges, outer)
                for i in range(len(units))
                for j in range(i + 1, len(units))
            )
            return tuple(_wrap(axis, u) for u in units) if separable else (Serial(axis, units),)


def _wrap(level: Axis | Condition, unit: Unit) -> Unit:
    return LoopNest((level, *unit.levels), unit.assign) if isinstance(unit, LoopNest) else Serial(level, (unit,))


def accesses(unit: Unit) -> Iterator[Access]:
    """Every element that the unit reads or writes."""
    match unit:
        case LoopNest(levels, assign, _):
            yield Access(assign.tensor, assign.index, True)
            values = [assign.value, *(c for c in levels if not isinstance(c, Axis) and is_value(c))]
            values += [i for i in assign.index if not isinstance(i, Int)]
            for value in values:
                for r in reads(value):
                    yield Access(r.tensor, r.index, False)
        case Serial(level, body):
            if not isinstance(level, Axis):
                for r in condition_reads((level,)):
                    yield Access(r.tensor, r.index, False)
            for inner in body:
                yield from accesses(inner)


def _separable(axis: str, earlier: Unit, later: Unit, ranges: Ranges, outer: frozenset[str]) -> bool:
    """Whether all of `earlier` may run before all of `later`: nothing in `later` meets `earlier` further on."""
    for a in accesses(earlier):
        for b in accesses(later):
            if a.tensor != b.tensor or not (a.written or b.written):
                continue
            found = distances(a.index, b.index, frozenset([axis]), outer, ranges)
            # distance = iteration of later - iteration of earlier; it must not be negative
            if found is not None and found.get(axis, -1) < 0:
                return False
    return True


def vector_axes(nest: LoopNest, ranges: Ranges, outer: frozenset[str]) -> frozenset[str]:
    """Axes whose iterations meet no other's element, so that all of them may run at once.

    Every dependence has distance zero on these; the others, run in program order, keep every dependence in order.
    """
    names = frozenset(a.name for a in nest.axes)
    free = set(names)
    target = Access(nest.assign.tensor, nest.assign.index, True)
    for other in [target, *(a for a in accesses(nest) if a.tensor == target.tensor and not a.written)]:
        found = distances(target.index, other.index, names, outer, ranges)
        if found is not None:
            free &= {n for n, d in found.items() if d == 0}
    return frozenset(free)
