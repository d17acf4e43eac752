"""How much a program computes: scalar operations of one run, two a multiply-add, integers too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.ir.needed import needed
from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Read, Select, Unary, Value, children, walk
from autosched.ir.variables import value_vars
from autosched.logic import FALSE, TRUE, Bool, Const, Var, all_of, conjuncts, evaluate, free_vars, interval
from autosched.logic.walk import substitute_bool

MOST_POINTS = 1 << 22
"""Points of the axes that conditions tie together, up to which all are looked at; beyond, so many evenly apart."""

Box = Mapping[str, tuple[int, int]]
"""Least and greatest value of each axis."""


def operations(program: Program) -> float:
    """Arithmetic operations and function calls that the program as it is written needs. One counts once for all values
    of axes that it does not depend on, and the same one of a statement once: it may be computed beforehand. Nothing
    counts where guards, loop bounds and masks leave nothing to do (`ir.needed`); subscripts, casts, choices and
    conditions never do. Where a size is symbolic, it is at its upper end.
    """
    ends = {name: Const(high) for name, (_, high) in program.symbolic.items()}
    total = 0.0
    for stage, where in zip(program.stages, needed(program), strict=True):
        box: dict[str, tuple[int, int]] = dict(program.symbolic)
        trips = {a.name: most_trips(a, box) for a in stage.axes}
        points = PointsHeld(trips, box, substitute_bool(where, ends))
        total += sum(points.along(value_vars(node)) for node in set(_computed(stage.assign.value)))
        total += points.along(trips) * (stage.assign.op != "=")
    return total


def within_peak(ratio: float) -> bool:
    """Whether a share of a machine's peak, as it is printed, is one that there can be."""
    return round(ratio, 2) <= 1


def steps(program: Program) -> float:
    """Operations that loops execute which compute every statement anew at each point, at the loops' greatest extents:
    what naive code does."""
    return sum(_steps(stage, dict(program.symbolic)) for stage in program.stages)


def unmasked_steps(program: Program) -> float:
    """The same without what is under a mask, or else not needed: what is computed anew counts each time."""
    ends = {name: Const(high) for name, (_, high) in program.symbolic.items()}
    found = zip(program.stages, needed(program), strict=True)
    return sum(_steps(stage, dict(program.symbolic), substitute_bool(where, ends)) for stage, where in found)


def share_needed(program: Program, stage: Stage, around: Sequence[Axis] = ()) -> float | None:
    """Of the points of a stage's axes in all iterations of the loops `around` the program, the outermost first, the
    share at which something of it is needed. None where that depends on names that are no axes."""
    where = needed(program)[program.stages.index(stage)]
    box: dict[str, tuple[int, int]] = dict(program.symbolic)
    trips = {a.name: most_trips(a, box) for a in (*around, *stage.axes)}
    loops = all_of(*(Var(a.name) >= a.lower for a in around), *(Var(a.name) < a.upper for a in around))
    if not (free_vars(where) | free_vars(loops)) <= trips.keys():
        return None
    points = [PointsHeld(trips, box, condition).along(trips) for condition in (all_of(where, loops), loops)]
    return points[0] / points[1] if points[1] else None


def most_trips(axis: Axis, box: dict[str, tuple[int, int]]) -> int:
    """The most trips that a loop makes inside others, whose ranges `box` holds; the loop's own is added to it."""
    if isinstance(axis.lower, Const) and isinstance(axis.upper, Const):
        low, high = axis.lower.value, axis.upper.value - 1
    else:
        low, high = interval(axis.lower, box)[0], interval(axis.upper, box)[1] - 1
    box[axis.name] = low, max(low, high)
    return max(0, high - low + 1)


def _steps(stage: Stage, box: dict[str, tuple[int, int]], where: Bool = TRUE) -> float:
    counted = sum(isinstance(node, Arith | Call | Unary) for node in walk(stage.assign.value))
    trips = {a.name: most_trips(a, box) for a in stage.axes}
    guards = all_of(*(g for g in stage.guards if isinstance(g, Bool)))
    return (counted + (stage.assign.op != "=")) * PointsHeld(trips, box, all_of(guards, where)).along(trips)


def _computed(value: Value) -> Iterator[Value]:
    """The operations of a value, without those of subscripts and conditions."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Arith | Call | Unary):
            yield node
        if isinstance(node, Select):
            waiting += [node.then, node.other]
        elif not isinstance(node, Read):
            waiting += children(node)


class PointsHeld:
    """The points of a box at which a condition holds."""

    def __init__(self, trips: Mapping[str, int], box: Box, condition: Bool) -> None:
        self.trips = trips
        self.none = condition == FALSE
        tied: list[tuple[frozenset[str], list[Bool]]] = []
        for part in conjuncts(condition):
            names, parts = free_vars(part), [part]
            for other in [g for g in tied if g[0] & names]:
                tied.remove(other)
                names, parts = names | other[0], [*other[1], *parts]
            tied.append((names, parts))
        self.groups = [(sorted(n), _held(sorted(n), box, parts)) for n, parts in tied if n and n <= trips.keys()]
        """Axes that the condition ties together, and where it holds."""

    def along(self, axes: Collection[str]) -> float:
        """How many values the axes take there."""
        shares, tied = [0.0] if self.none else [1.0], set[str]()
        for names, held in self.groups:
            tied |= set(names)
            out = tuple(d for d, name in enumerate(names) if name not in axes)
            left = float(np.mean(held.any(axis=out)))
            shares.append(left * prod(self.trips[n] for n in names if n in axes))
        return prod(shares) * prod(n for name, n in self.trips.items() if name in axes and name not in tied)


def _held(names: list[str], box: Box, parts: list[Bool]) -> npt.NDArray[np.bool_]:
    sizes = [box[n][1] - box[n][0] + 1 for n in names]
    most = int(MOST_POINTS ** (1 / len(names))) if prod(sizes) > MOST_POINTS else max(sizes)
    ends = zip((box[n] for n in names), sizes, strict=True)
    taken = [np.linspace(low, high, min(size, most)).round().astype(np.int64) for (low, high), size in ends]
    grid = dict(zip(names, np.meshgrid(*taken, indexing="ij", sparse=True), strict=True))
    held = np.ones([len(t) for t in taken], np.bool_)
    for part in parts:
        held &= evaluate(part, grid)
    return held
